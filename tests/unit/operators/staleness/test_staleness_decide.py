"""The rule of the staleness checker, case by case; the vectors of its specification."""

import copy
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.operators.staleness.model import (
    CHECKER,
    OPERATOR,
    START,
    TYPES,
    ModelServer,
    changed,
    condition,
    stamp,
)

from quarterdeck.api.meta import Object
from quarterdeck.operators.staleness.decide import (
    Case,
    Challenge,
    CheckState,
    Decision,
    LookAgain,
    Nothing,
    Verdict,
    decide,
)
from quarterdeck.operators.staleness.evidence import Proof

MINUTE = 60
INTERVAL = timedelta(minutes=10)
CHECKING = "Operator checking for stale status, the active operator will reset this message: "


def four(message: str = "all is well", **options: Any) -> ModelServer:
    """An operator that has just said that all is well."""
    statuses = {"Available": "True", "Upgradeable": "True"}
    made = [condition(kind, statuses.get(kind, "False"), message) for kind in TYPES]
    return ModelServer([*made, condition("Disabled", "False", "never mind")], **options)


def ask(server: ModelServer, **options: Any) -> Decision:
    return decide(Case(object=server.get(), now=server.now, interval=INTERVAL, **options))


def act(server: ModelServer, **options: Any) -> Decision:
    """Decide, and carry it out as the checker would."""
    decision = ask(server, **options)
    if isinstance(decision, Challenge | Verdict):
        assert server.update(CHECKER, decision.conditions), "a write that changes nothing"
    return decision


def challenged(server: ModelServer) -> ModelServer:
    """The same operator, silent for more than ten minutes and asked just now."""
    server.pass_time(10 * MINUTE + 1)
    assert isinstance(act(server), Challenge)
    return server


def given_up(server: ModelServer) -> ModelServer:
    """The same operator, which did not answer."""
    challenged(server).pass_time(10 * MINUTE + 1)
    assert isinstance(act(server), Verdict)
    return server


def answer(server: ModelServer, *types: str, message: str = "all is well") -> None:
    """The operator puts its message and status back on some conditions, or on all."""
    conditions = server.conditions
    for kind in types or TYPES:
        was = server.condition(kind)
        status = "True" if kind in ("Available", "Upgradeable") else "False"
        since = was["lastTransitionTime"] if was["status"] == status else stamp(server.now)
        fields = {"message": message, "status": status, "lastTransitionTime": since}
        conditions = changed(conditions, kind, **fields)
    server.update(OPERATOR, conditions)


both_kinds_of_list = pytest.mark.parametrize(
    "atomic", [False, True], ids=["conditions by type", "conditions as an atomic list"]
)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(9 * MINUTE + 59, LookAgain, id="silent for 9m59s is left alone"),
        pytest.param(10 * MINUTE, LookAgain, id="silent for 10m is not more than 10m"),
        pytest.param(10 * MINUTE + 0.9, LookAgain, id="part of a second does not count"),
        pytest.param(10 * MINUTE + 1, Challenge, id="silent for just over 10m is challenged"),
    ],
)
@both_kinds_of_list
def test_the_challenge_comes_after_the_interval(
    seconds: float, expected: type, atomic: bool
) -> None:
    server = four(atomic=atomic)
    server.pass_time(seconds)
    decision = ask(server)
    assert type(decision) is expected
    if isinstance(decision, LookAgain):
        assert (decision.at, decision.then) == (
            START + INTERVAL + timedelta(seconds=1),
            "challenge",
        )


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        pytest.param(9 * MINUTE, LookAgain, id="asked 9m ago, there is still time"),
        pytest.param(10 * MINUTE, LookAgain, id="asked 10m ago is not more than 10m"),
        pytest.param(10 * MINUTE + 1, Verdict, id="asked over 10m ago is given up"),
    ],
)
@both_kinds_of_list
def test_the_verdict_comes_an_interval_after_the_challenge(
    seconds: float, expected: type, atomic: bool
) -> None:
    server = challenged(four(atomic=atomic))
    server.pass_time(seconds)
    assert type(ask(server)) is expected


@both_kinds_of_list
def test_both_messages_are_the_documents_to_the_letter(atomic: bool) -> None:
    server = challenged(four("It works.", atomic=atomic))
    for kind in TYPES:
        assert server.condition(kind)["message"] == (
            "Operator checking for stale status, "
            "the active operator will reset this message: It works."
        )
    before = {kind: server.condition(kind) for kind in TYPES}
    server.pass_time(10 * MINUTE + 1)
    act(server)
    for kind in TYPES:
        last = before[kind]["status"]
        assert server.condition(kind) == before[kind] | {
            "status": "Unknown",
            "lastTransitionTime": stamp(server.now),
            "message": "Operator has not updated this condition for more than 20 minutes, "
            f'last known condition state was "{last}", original message: It works.',
        }


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        pytest.param(timedelta(seconds=6), "more than 12 seconds,", id="6s"),
        pytest.param(timedelta(minutes=1), "more than 2 minutes,", id="1m"),
        pytest.param(timedelta(minutes=10), "more than 20 minutes,", id="10m"),
    ],
)
def test_the_verdict_names_twice_the_interval(interval: timedelta, said: str) -> None:
    server = four()
    for kind in (Challenge, Verdict):
        server.pass_time(interval.total_seconds() + 1)
        decision = decide(Case(object=server.get(), now=server.now, interval=interval))
        assert isinstance(decision, kind)
        server.update(CHECKER, decision.conditions)
    assert all(said in server.condition(kind)["message"] for kind in TYPES)
    server.pass_time(3600)
    assert ask(server).state is CheckState.STALE, "recognised under any other interval"


@both_kinds_of_list
def test_one_of_four_put_back_means_alive(atomic: bool) -> None:
    """No verdict follows, however long the other three stay as they are."""
    server = challenged(four(atomic=atomic))
    server.pass_time(5 * MINUTE)
    answer(server, "Progressing")
    assert ask(server).state is CheckState.ALIVE
    server.pass_time(10 * MINUTE)
    assert isinstance(ask(server), LookAgain)
    server.pass_time(1)
    assert isinstance(act(server), Challenge)
    assert all(server.condition(kind)["message"] == CHECKING + "all is well" for kind in TYPES)


@both_kinds_of_list
def test_an_answer_with_a_transition_three_days_ago_counts_from_the_answer(atomic: bool) -> None:
    server = four(atomic=atomic)
    server.pass_time(3 * 24 * 3600)
    assert isinstance(act(server), Challenge)
    server.pass_time(20)
    answer(server)
    assert server.condition("Available")["lastTransitionTime"] == stamp(START)
    decision = ask(server)
    assert isinstance(decision, LookAgain)
    assert decision.at == server.now + INTERVAL + timedelta(seconds=1)


@both_kinds_of_list
def test_a_checker_that_starts_while_one_stands_challenged_has_the_same_deadline(
    atomic: bool,
) -> None:
    """Everything is in the object: two checkers with no memory in common agree."""
    server = challenged(four(atomic=atomic))
    first = ask(server)
    server.pass_time(4 * MINUTE)
    second = ask(server)
    assert isinstance(first, LookAgain)
    assert isinstance(second, LookAgain)
    assert first.at == second.at


@both_kinds_of_list
def test_nothing_is_written_once_all_are_given_up_however_long(atomic: bool) -> None:
    server = given_up(four(atomic=atomic))
    for _ in range(5):
        server.pass_time(24 * 3600)
        decision = ask(server)
        assert isinstance(decision, Nothing)
        assert decision.state is CheckState.STALE


@both_kinds_of_list
def test_the_next_challenge_heals_what_was_left_given_up_beside_a_live_one(atomic: bool) -> None:
    server = given_up(four(atomic=atomic))
    answer(server, "Available")
    assert ask(server).state is CheckState.ALIVE
    server.pass_time(10 * MINUTE + 1)
    assert isinstance(act(server), Challenge)
    for kind, status in zip(TYPES, ("False", "True", "False", "True"), strict=True):
        one = server.condition(kind)
        assert (one["status"], one["message"]) == (status, CHECKING + "all is well")


@both_kinds_of_list
def test_all_messages_prefixed_by_the_operator_itself(atomic: bool) -> None:
    """Nothing is nested or written twice, and a dead one is given up all the same."""
    server = four(CHECKING + "mine", atomic=atomic)
    for seconds in (0, 9 * MINUTE, 10 * MINUTE):
        server.now = START + timedelta(seconds=seconds)
        assert isinstance(ask(server), LookAgain)
    server.now = START + 2 * INTERVAL
    assert isinstance(ask(server), LookAgain), "two intervals have not passed yet"
    server.pass_time(1)
    assert isinstance(act(server), Verdict)
    assert server.condition("Available")["message"].endswith('"True", original message: mine')


@both_kinds_of_list
def test_one_message_prefixed_by_the_operator_itself(atomic: bool) -> None:
    server = four(atomic=atomic)
    server.update(OPERATOR, changed(server.conditions, "Degraded", message=CHECKING + "mine"))
    writes = []
    for _ in range(60):
        server.pass_time(MINUTE)
        decision = act(server)
        if isinstance(decision, Challenge | Verdict):
            writes.append(type(decision))
            assert all(one["message"].count("Operator checking") <= 1 for one in server.conditions)
    assert writes == [Challenge, Verdict]
    assert server.condition("Degraded")["message"].endswith("original message: mine")


@both_kinds_of_list
def test_a_new_reason_without_a_new_message_is_a_sign_of_life(atomic: bool) -> None:
    server = challenged(four(atomic=atomic))
    server.pass_time(10 * MINUTE)
    server.update(OPERATOR, changed(server.conditions, "Available", reason="StillHere"))
    server.pass_time(10 * MINUTE)
    decision = ask(server)
    assert isinstance(decision, LookAgain)
    assert decision.evidence.alive.by == f"a write by {OPERATOR}"
    server.pass_time(10 * MINUTE + 1)
    assert isinstance(ask(server), Verdict), "but not for ever"


@both_kinds_of_list
def test_a_write_in_the_very_second_of_the_challenge_is_a_sign_of_life(atomic: bool) -> None:
    """It came after it: the challenge carried the version of an object with an older one."""
    server = challenged(four(atomic=atomic))
    server.update(OPERATOR, changed(server.conditions, "Available", reason="StillHere"))
    server.pass_time(10 * MINUTE + 1)
    assert isinstance(ask(server), LookAgain)
    server.pass_time(10 * MINUTE)
    assert isinstance(ask(server), Verdict)


def test_the_times_of_our_own_changes_prove_nothing() -> None:
    """A challenge that healed orphans moved their transition; the operator did not."""
    server = given_up(four())
    answer(server, "Available")
    challenged(server)
    assert server.condition("Degraded")["lastTransitionTime"] == stamp(server.now)
    server.pass_time(10 * MINUTE + 1)
    assert isinstance(ask(server), Verdict)


def test_what_was_given_up_before_is_left_as_it_is_by_the_next_verdict() -> None:
    """Also when it was given up by a checker with another interval."""
    server = four()
    old = "Operator has not updated this condition for more than 12 seconds, "
    old += 'last known condition state was "False", original message: all is well'
    said = changed(server.conditions, "Degraded", status="Unknown", message=old)
    for kind in ("Available", "Progressing", "Upgradeable"):
        said = changed(said, kind, message=CHECKING + "all is well")
    server.pass_time(10 * MINUTE + 1)
    server.update(CHECKER, said)
    before = server.condition("Degraded")
    server.pass_time(10 * MINUTE + 1)
    assert isinstance(act(server), Verdict)
    assert server.condition("Degraded") == before
    assert ask(server).state is CheckState.STALE


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("", id="empty"),
        pytest.param("two\nlines\n\n", id="many lines"),
        pytest.param(' "quoted", original message: x', id="with the verdict's own words"),
    ],
)
def test_a_message_survives_both_marks(message: str) -> None:
    server = given_up(four(message))
    answer(server, "Available", message=message)
    server.pass_time(10 * MINUTE + 1)
    act(server)
    assert all(server.condition(kind)["message"] == CHECKING + message for kind in TYPES)


def test_what_was_unknown_already_keeps_its_status_and_time() -> None:
    server = four()
    server.update(OPERATOR, changed(server.conditions, "Degraded", status="Unknown"))
    given_up(server)
    one = server.condition("Degraded")
    assert (one["status"], one["lastTransitionTime"]) == ("Unknown", stamp(START))
    assert 'state was "Unknown"' in one["message"]


def test_a_transition_in_the_future_proves_nothing() -> None:
    server = four()
    future = stamp(START + timedelta(days=1))
    server.update(
        OPERATOR, changed(server.conditions, "Available", lastTransitionTime=future, reason="Odd")
    )
    challenged(server)


def test_a_newer_transition_counts_where_no_manager_is_named() -> None:
    """An entry of managedFields that lost its time leaves the conditions' own."""
    server = four()
    server.pass_time(3600)
    answer(server, message="other")
    obj = server.get()
    obj["metadata"]["managedFields"][0].pop("time")
    obj["status"]["conditions"][0]["lastTransitionTime"] = stamp(server.now)
    decision = decide(Case(object=obj, now=server.now, interval=INTERVAL))
    assert decision.evidence.alive == Proof(server.now, "the last transition of Degraded")


def test_an_object_that_was_just_created_is_left_alone() -> None:
    """Restored from a backup its conditions are old, and nobody is named who wrote them."""
    server = four()
    server.pass_time(3600)
    obj = server.get(managedFields=[{"manager": "restore", "fieldsV1": {"f:spec": {}}}])
    obj["metadata"]["creationTimestamp"] = stamp(server.now)
    decision = decide(Case(object=obj, now=server.now, interval=INTERVAL))
    assert isinstance(decision, LookAgain)
    assert decision.evidence.alive == Proof(server.now, "its creation")


def test_after_a_conflict_the_plan_is_thrown_away() -> None:
    """Of three checkers that decide at once one writes, and the others find it done."""
    server = four()
    server.pass_time(10 * MINUTE + 1)
    plans = [ask(server) for _ in range(3)]
    version, writes = server.version, 0
    for plan in plans:
        assert isinstance(plan, Challenge)
        if server.version == version:
            server.update(CHECKER, plan.conditions, version)
            writes += 1
        assert isinstance(ask(server), LookAgain), "decided again on what there is now"
    assert writes == 1


def test_other_conditions_and_unknown_fields_are_not_touched() -> None:
    server = four()
    extended = [one | {"severity": {"a": [1]}} for one in server.conditions]
    server.update(OPERATOR, extended)
    given_up(server)
    assert server.condition("Disabled") == extended[-1]
    for before, after in zip(extended, server.conditions, strict=True):
        ours = {"message", "status", "lastTransitionTime"}
        assert {k: v for k, v in before.items() if k not in ours} == {
            k: v for k, v in after.items() if k not in ours
        }


def test_upgradeable_false_can_be_kept() -> None:
    """Unknown would permit an upgrade that the operator has forbidden."""
    server = four()
    server.update(OPERATOR, changed(server.conditions, "Upgradeable", status="False"))
    forbidden = server.condition("Upgradeable")
    for kind in (Challenge, Verdict):
        server.pass_time(10 * MINUTE + 1)
        assert isinstance(act(server, keep_upgradeable_false=True), kind)
        assert server.condition("Upgradeable") == forbidden
    assert ask(server, keep_upgradeable_false=True).state is CheckState.STALE
    assert server.condition("Available")["status"] == "Unknown"


def test_upgradeable_false_is_kept_by_a_checker_that_gets_the_option_after_its_challenge() -> None:
    """Its mark on that condition stays, and the others make the operator stale."""
    server = four()
    server.update(OPERATOR, changed(server.conditions, "Upgradeable", status="False"))
    server.pass_time(10 * MINUTE + 1)
    assert isinstance(act(server), Challenge)
    server.pass_time(10 * MINUTE + 1)
    assert isinstance(act(server, keep_upgradeable_false=True), Verdict)
    assert server.condition("Upgradeable")["status"] == "False"
    assert ask(server, keep_upgradeable_false=True).state is CheckState.STALE


def test_a_renewed_lease_is_one_more_proof_of_life() -> None:
    server = four()
    server.pass_time(3600)
    renewed = Proof(server.now - timedelta(seconds=3), "a lease")
    decision = ask(server, lease=renewed)
    assert isinstance(decision, LookAgain)
    assert decision.at == renewed.time + INTERVAL + timedelta(seconds=1)
    old = Proof(server.now - INTERVAL - timedelta(seconds=1), "a lease")
    assert isinstance(ask(server, lease=old), Challenge)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda obj: obj.pop("status"), id="no status"),
        pytest.param(lambda obj: obj["status"].pop("conditions"), id="no conditions"),
        pytest.param(lambda obj: obj["status"].update(conditions={}), id="conditions no list"),
        pytest.param(lambda obj: obj.update(status=None), id="status null"),
        pytest.param(lambda obj: obj["status"].update(conditions=[]), id="empty conditions"),
        pytest.param(
            lambda obj: obj["status"].update(conditions=[condition("Disabled")]), id="other types"
        ),
        pytest.param(
            lambda obj: obj["metadata"].update(deletionTimestamp="2026-01-01T12:00:00Z"),
            id="being deleted",
        ),
    ],
)
def test_nothing_is_done_where_there_is_nothing_to_watch(make: Any) -> None:
    server = four()
    obj = server.get()
    make(obj)
    server.pass_time(3600)
    decision = decide(Case(object=obj, now=server.now, interval=INTERVAL))
    assert isinstance(decision, Nothing)
    assert decision.state is CheckState.UNWATCHED


ODD: list[Object] = [
    {"type": "Available"},
    {"type": "Available", "status": None, "message": None, "lastTransitionTime": "yesterday"},
    {"type": "Available", "status": True, "message": 7, "lastTransitionTime": 5},
]


@pytest.mark.parametrize("odd", ODD, ids=["bare", "nulls and no time", "wrong types"])
def test_odd_conditions_are_carried_through_both_writes(odd: Object) -> None:
    """What is missing stays missing until we have something to say there."""
    obj: Object = {
        "metadata": {"name": "odd", "managedFields": [{"manager": "x", "fieldsV1": None}, 3]},
        "status": {"conditions": [odd, "nonsense", {"status": "True"}]},
    }
    now = START
    for kind in (Challenge, Verdict):
        decision = decide(Case(object=obj, now=now, interval=INTERVAL))
        assert isinstance(decision, kind)
        assert decision.conditions[1:] == obj["status"]["conditions"][1:]
        obj = copy.deepcopy(obj)
        obj["status"]["conditions"] = decision.conditions
        now += INTERVAL + timedelta(seconds=1)
    assert decide(Case(object=obj, now=now, interval=INTERVAL)).state is CheckState.STALE
