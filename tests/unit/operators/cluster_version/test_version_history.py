"""The history of releases: what stays, in which order, and with which times."""

from datetime import timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operators.cluster_version.version.builders import START, entry, release

from quarterdeck.operators.cluster_version.history import (
    MAX_ENTRIES,
    MAX_RISKS,
    NEWEST_KEPT,
    History,
    completed,
    latest_completed,
    maybe_running,
    pruned,
    started,
)

states = st.sampled_from(["Completed", "Partial"])
histories = st.lists(states, max_size=130).map(
    lambda chosen: tuple(
        entry(f"1.0.{len(chosen) - index}", state, minutes=len(chosen) - index)
        for index, state in enumerate(chosen)
    )
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.sampled_from(["1.0.0", "1.0.1", "1.1.0"])),
        st.tuples(st.just("complete"), st.just("")),
    ),
    max_size=250,
)


def replay(taken: list[tuple[str, str]]) -> History:
    history: History = ()
    for minute, (what, version) in enumerate(taken):
        now = START + timedelta(minutes=minute, microseconds=7)
        if what == "start":
            history = started(history, release(version), now)
        else:
            history = completed(history, now)
    return history


@given(histories)
def test_pruning_keeps_the_first_the_newest_five_and_the_latest_completed(
    history: History,
) -> None:
    kept = pruned(history)
    assert len(kept) == min(len(history), MAX_ENTRIES)
    assert kept[:NEWEST_KEPT] == history[:NEWEST_KEPT]
    assert kept[-1:] == history[-1:]
    assert latest_completed(kept) == latest_completed(history)
    assert [one for one in history if one in kept] == list(kept)
    assert pruned(kept) == kept


@given(histories)
def test_an_abandoned_update_is_forgotten_before_a_release_that_ran(history: History) -> None:
    kept = pruned(history)
    dropped = [one for one in history if one not in kept]
    if any(one.state == "Completed" for one in dropped):
        always = {*kept[:NEWEST_KEPT], kept[-1]}
        assert all(one.state == "Completed" for one in kept if one not in always)


@given(steps)
def test_whatever_happens_the_history_is_in_order_and_only_the_newest_is_open(
    taken: list[tuple[str, str]],
) -> None:
    history = replay(taken)
    assert len(history) <= MAX_ENTRIES
    begun = [one.started_time for one in history]
    assert begun == sorted(begun, reverse=True)
    for index, one in enumerate(history):
        is_open = one.completion_time is None
        assert is_open == (index == 0 and one.state == "Partial")
        assert one.completion_time is None or one.completion_time >= one.started_time
        assert one.started_time.microsecond == 0
    for newer, older in pairwise(history):
        assert newer.version != older.version or len(history) == MAX_ENTRIES


def test_a_release_that_is_newest_already_is_not_begun_again() -> None:
    history = (entry("1.0.0", "Partial"),)
    assert started(history, release("1.0.0"), START + timedelta(hours=1)) is history
    done = completed(history, START + timedelta(hours=1))
    assert started(done, release("1.0.0"), START + timedelta(hours=2)) is done


def test_completing_twice_keeps_the_first_time() -> None:
    once = completed((entry("1.0.0", "Partial"),), START + timedelta(hours=1))
    assert once[0].state == "Completed"
    assert once[0].completion_time == START + timedelta(hours=1)
    assert completed(once, START + timedelta(hours=2)) is once
    assert completed((), START) == ()


def test_an_update_that_is_left_gets_an_end_but_stays_partial() -> None:
    history = (entry("1.1.0", "Partial", 5), entry("1.0.0"))
    now = START + timedelta(minutes=9)
    new = started(history, release("1.1.1"), now, risks="overridden")
    assert [(one.version, one.state) for one in new] == [
        ("1.1.1", "Partial"),
        ("1.1.0", "Partial"),
        ("1.0.0", "Completed"),
    ]
    assert new[1].completion_time == now
    assert new[0].accepted_risks == "overridden"
    assert new[2] == history[1]


def test_a_clock_that_was_set_back_does_not_end_what_has_not_begun() -> None:
    history: History = (entry("1.0.0", "Partial", 10),)
    assert completed(history, START)[0].completion_time == history[0].started_time
    assert started(history, release("1.1.0"), START)[1].completion_time == history[0].started_time


def test_parts_of_every_version_since_the_last_complete_one_may_run() -> None:
    history = (
        entry("1.1.1", "Partial", 4),
        entry("1.1.0", "Partial", 3),
        entry("1.1.1", "Partial", 2),
        entry("1.0.0", "Completed", 1),
        entry("0.9.0", "Completed", 0),
    )
    assert maybe_running(history) == ("1.1.1", "1.1.0", "1.0.0")
    assert maybe_running(history[3:]) == ("1.0.0",)
    assert maybe_running(()) == ()


def test_the_first_and_the_last_completed_of_each_minor_stay_longest() -> None:
    """Five minors of forty patch releases each; only their ends and the newest are left of old."""
    versions = [f"1.{minor}.{patch}" for minor in range(5) for patch in range(40)]
    history: History = ()
    for minute, version in enumerate(versions):
        now = START + timedelta(minutes=minute)
        history = completed(started(history, release(version), now), now)
    kept = {one.version for one in history}
    assert len(history) == MAX_ENTRIES
    assert {f"1.{minor}.{patch}" for minor in range(5) for patch in (0, 39)} <= kept


def test_accepted_risks_are_cut() -> None:
    """A hundred entries with long risks would not fit into the status."""
    (entered,) = started((), release("1.0.0"), START, risks="é" * 5000)
    assert entered.accepted_risks is not None
    assert entered.accepted_risks.endswith("é…")
    assert len(entered.accepted_risks.encode()) <= MAX_RISKS
    (entered,) = started((), release("1.0.0"), START, risks="one")
    assert entered.accepted_risks == "one"
