"""The page of one operator: its clock, its writers, and the history of its conditions."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.console_objects import conditions, operator, written

from quarterdeck.api.meta import Object
from quarterdeck.api.times import format_time
from quarterdeck.cli.console_sources import sources
from quarterdeck.console.condition_changes import ConditionChange, condition_changes
from quarterdeck.console.pages.history import MAX_SHOWN, condition_history
from quarterdeck.console.pages.operator import events_about, other_writes
from quarterdeck.console.pages.sign_of_life import sign_of_life
from quarterdeck.console.render import environment, left, show_left, wait, with_ages
from quarterdeck.status.health import health_of
from quarterdeck.status.writers import last_writes

NOW = datetime(2026, 11, 17, 23, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def reported(minutes: int, *more: Object) -> Object:
    """An operator that wrote its conditions some minutes ago."""
    entry = written("ingress-operator", 0, "status", "message")
    entry["time"] = format_time(NOW - minutes * MINUTE)
    obj = operator("ingress", conditions(message="well"))
    obj["metadata"] |= {
        "creationTimestamp": "2026-11-01T00:00:00Z",
        "managedFields": [entry, *more],
    }
    return obj


def clock_of(obj: Object, settings: Object | None = None, unread: str = "") -> Object:
    return sources().staleness(obj, settings, unread, (), NOW)


def test_a_running_operator_is_asked_after_an_interval_and_stale_after_two() -> None:
    life = sign_of_life(clock_of(reported(4)))
    assert life.state == "alive"
    assert life.alive == NOW - 4 * MINUTE
    assert life.next == "It is asked"
    assert (life.next_from, life.next_at) == (life.alive, NOW + timedelta(minutes=6, seconds=1))
    assert life.asked == life.next_at
    assert life.stale == NOW + timedelta(minutes=16, seconds=1)
    assert not life.is_asked
    assert life.interval == 10 * MINUTE
    assert "no checker has published" in life.interval_from


def test_what_only_gets_older_does_not_change_the_page() -> None:
    obj = reported(4)
    views = {
        repr(sign_of_life(sources().staleness(obj, None, "", (), NOW + timedelta(seconds=after))))
        for after in (0, 1, 100)
    }
    assert len(views) == 1


def test_a_step_that_is_due_has_no_time() -> None:
    life = sign_of_life(clock_of(reported(30)))
    assert (life.next, life.next_at) == ("It is asked", None)


def test_settings_that_cannot_be_read_are_said() -> None:
    assert "may not" in sign_of_life(clock_of(reported(1), None, "you may not")).interval_from


@pytest.mark.parametrize("explanation", [{}, {"lastAlive": {"time": "nonsense"}, "next": None}])
def test_an_explanation_without_content_is_shown(explanation: Object) -> None:
    life = sign_of_life(explanation)
    assert (life.alive, life.next, life.asked, life.stale) == (None, "", None, None)


def test_who_wrote_a_condition_last() -> None:
    checker = written("quarterdeck-staleness", 0, "status", "message")
    checker["time"] = format_time(NOW)
    only = checker["fieldsV1"]["f:status"]["f:conditions"]
    for name in [key for key in only if "Available" not in key and key != "."]:
        del only[name]
    obj = reported(5, checker)
    found = {type_: write.manager for type_, write in last_writes(obj).items()}
    assert found == {
        "Available": "quarterdeck-staleness",
        "Progressing": "ingress-operator",
        "Degraded": "ingress-operator",
        "Upgradeable": "ingress-operator",
    }
    assert other_writes(obj) == []
    assert last_writes({"metadata": {}}) == {}


def test_a_manager_that_wrote_nothing_last_is_listed_besides() -> None:
    later = written("quarterdeck-staleness", 0, "status")
    later["time"] = format_time(NOW)
    assert [one.manager for one in other_writes(reported(5, later))] == ["ingress-operator"]


def test_the_history_has_what_was_seen_and_what_the_conditions_say() -> None:
    since = NOW - 30 * MINUTE
    told = {"lastTransitionTime": format_time(since)}
    health = health_of(operator("x", conditions(degraded="True", **told)))
    seen = [ConditionChange(type="Degraded", before="False", after="True", at=since)]
    earlier = [ConditionChange(type="Degraded", before="True", after="False", at=since - MINUTE)]
    found = condition_history(health.conditions, [*seen, *earlier])
    degraded = [(one.before, one.after, one.seen) for one in found if one.type == "Degraded"]
    assert degraded == [("False", "True", True), ("True", "False", True)]
    others = {one.type: (one.before, one.seen) for one in found if one.type != "Degraded"}
    assert others == dict.fromkeys(("Available", "Progressing", "Upgradeable"), ("", False))


def test_a_change_whose_time_is_ahead_of_our_clock_is_one_entry() -> None:
    ahead = NOW + timedelta(seconds=1)
    told = {"lastTransitionTime": format_time(ahead)}
    before = operator("x", conditions())
    after = operator("x", conditions(degraded="True", **told))
    changes = condition_changes(before, after, NOW)
    found = condition_history(health_of(after).conditions, changes)
    degraded = [(one.at, one.before, one.after) for one in found if one.type == "Degraded"]
    assert degraded == [(NOW, "False", "True")]


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=8))
def test_each_change_that_was_seen_is_one_entry_whatever_the_clocks(
    reports: list[tuple[bool, int]],
) -> None:
    """The operator's clock, which its conditions have, is up to three seconds off ours."""
    before, told = operator("x", conditions()), format_time(NOW - MINUTE)
    seen: list[ConditionChange] = []
    for number, (degraded, skew) in enumerate(reports):
        now = NOW + number * MINUTE
        status = str(degraded)
        if status != health_of(before).status("Degraded"):
            told = format_time(now + timedelta(seconds=skew))
        after = operator("x", conditions(degraded=status, lastTransitionTime=told))
        seen = [*condition_changes(before, after, now), *seen]
        before = after
    found = condition_history(health_of(before).conditions, seen)
    degraded_ones = [one for one in found if one.type == "Degraded"]
    if seen:
        assert [one.after for one in degraded_ones] == [one.after for one in seen]
        assert all(one.seen for one in degraded_ones)
    else:
        assert [one.seen for one in degraded_ones] == [False]


def test_the_history_has_an_end() -> None:
    changes = [
        ConditionChange(type="Degraded", before="a", after="b", at=NOW + number * MINUTE)
        for number in range(100)
    ]
    found = condition_history((), changes)
    assert len(found) == MAX_SHOWN
    assert found[0].at == NOW + 99 * MINUTE


def test_the_history_of_a_stale_operator_has_the_status_before_the_verdict() -> None:
    from tests.console_objects import stale

    found = condition_history(health_of(stale("x")).conditions, ())
    assert {(one.type, one.before, one.after) for one in found} == {
        ("Available", "True", "Unknown"),
        ("Progressing", "False", "Unknown"),
        ("Degraded", "False", "Unknown"),
        ("Upgradeable", "True", "Unknown"),
    }


def test_only_events_about_the_operator_are_shown() -> None:
    events = [{"regarding": {"name": "a"}}, {"regarding": {"name": "b"}}, {}]
    assert events_about("a", events) == events[:1]


def test_the_time_that_is_left_is_no_part_of_a_fragment() -> None:
    made = f"{left(NOW)} {wait(NOW - 4 * MINUTE, NOW)}"
    assert "in " not in made
    page = with_ages(made, NOW - MINUTE)
    assert ">in 1m<" in page
    assert 'value="750"' in page
    assert ">now<" in with_ages(made, NOW + MINUTE)
    assert 'value="1000"' in with_ages(made, NOW + MINUTE)


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "now"), (-3, "now"), (61, "in 1m1s")])
def test_show_left(seconds: float, text: str) -> None:
    assert show_left(seconds) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("a\rb", "a\\rb"),
        ("\x1b[31m", "\\x1b[31m"),
        ("größer 日本", "größer 日本"),
    ],
)
def test_texts_are_shown_as_they_are_written(text: str, shown: str) -> None:
    made = environment().from_string("{{ text }}|{{ text|exact }}").render(text=text)
    assert made == f"{shown}|{text}"
