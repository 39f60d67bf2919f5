"""One write per operator and interval, whatever the server's times say; and what hides nobody."""

from collections.abc import Callable
from datetime import timedelta

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
    Restore,
    Verdict,
    Write,
    decide,
)
from quarterdeck.operators.staleness.evidence import Proof
from quarterdeck.operators.staleness.sightings import Sightings
from quarterdeck.status.staleness_marks import verdict_message
from quarterdeck.status.writers import ANCIENT, PROBE, cannot_answer

P = 600
INTERVAL = timedelta(seconds=P)


def silent(one: Object) -> Object:
    """The condition without a message."""
    return {field: value for field, value in one.items() if field != "message"}


class Checker:
    """A checker with its memory, and a clock of its own."""

    def __init__(self, server: ModelServer, *, keep: bool = False) -> None:
        self.server = server
        self.keep = keep
        self.memory = Sightings(keep_upgradeable_false=keep)
        self.clock = 0.0
        self.writes: list[type] = []

    def pass_time(self, seconds: float, jump: float = 0.0) -> None:
        self.clock += seconds
        self.server.pass_time(seconds + jump)

    def act(self, obj: Object | None = None) -> Decision:
        obj = obj or self.server.get()
        seen = self.memory.record(obj, self.server.now, self.clock)
        decision = decide(
            Case(
                object=obj,
                now=self.server.now,
                interval=INTERVAL,
                keep_upgradeable_false=self.keep,
                seen=seen,
            )
        )
        if isinstance(decision, Write) and not self.memory.wait("it", self.clock, INTERVAL):
            self.server.update(CHECKER, decision.conditions)
            self.memory.note_write("it", self.clock)
            self.memory.record(self.server.get(), self.server.now, self.clock)
            self.writes.append(type(decision))
        return decision


@pytest.mark.parametrize("upgradeable", ["False", "True"])
def test_a_dead_operator_is_found_whose_upgradeable_is_kept(upgradeable: str) -> None:
    """The checker waited for a mark on it, which it never sets: no verdict ever came."""
    said = [condition(kind) for kind in TYPES]
    server = ModelServer(changed(said, "Upgradeable", status=upgradeable))
    checker = Checker(server, keep=True)
    for _ in range(3 * P // 10):
        checker.pass_time(10)
        checker.act()
    assert checker.writes == [Challenge, Verdict]
    assert checker.act().state is CheckState.STALE


def test_an_answer_that_only_removes_the_message_is_a_sign_of_life() -> None:
    """It moves no time on the server: such an operator was asked again at once, for ever."""
    said = [silent(condition(kind)) for kind in TYPES]
    checker = Checker(ModelServer(said))
    for _ in range(6 * P // 10):
        checker.pass_time(10)
        checker.act()
        checker.server.update(OPERATOR, said)
    assert checker.writes == [Challenge] * 5


def test_a_restart_right_after_such_an_answer_asks_nobody_again() -> None:
    """The answer left no trace: the checker asked again at each restart, and its verdict said
    twice the time that was true.
    """
    said = [silent(condition(kind)) for kind in TYPES]
    checker = Checker(ModelServer(said))
    for _ in range(6 * P // 10):
        checker.pass_time(10)
        checker.act()
        if checker.server.update(OPERATOR, said):
            checker.memory = Sightings()
    assert checker.writes == [Challenge] * 5


@pytest.mark.parametrize("ahead", [2 * P, -2 * P])
def test_servers_whose_clocks_differ_by_more_than_the_interval(ahead: float) -> None:
    """The checker's server and the operator's: no storm, and nobody who answers is given up."""
    said = [condition(kind) for kind in TYPES]
    checker = Checker(ModelServer(said))
    for _ in range(6 * P // 10):
        checker.pass_time(10)
        checker.act()
        checker.server.pass_time(ahead)
        checker.server.update(OPERATOR, said)
        checker.server.pass_time(-ahead)
    assert set(checker.writes) == {Challenge}
    assert len(checker.writes) <= 6


@pytest.mark.parametrize("ahead", [P / 2, 2 * P, -2 * P])
@pytest.mark.parametrize("alive", [True, False])
def test_a_load_balancer_before_servers_whose_clocks_differ(ahead: float, alive: bool) -> None:
    """Each request may reach the other server: no storm, and no verdict before two intervals."""
    said = [condition(kind) for kind in TYPES]
    checker = Checker(ModelServer(said))
    checker.act()
    verdict = None
    for number in range(6 * P // 10):
        checker.pass_time(10)
        other = ahead if number % 2 else 0
        checker.server.pass_time(other)
        checker.act()
        checker.server.pass_time(-other)
        if Verdict in checker.writes and verdict is None:
            verdict = checker.clock
        if alive and number % 3 == 0:
            checker.server.update(OPERATOR, said)
    if alive:
        assert set(checker.writes) == {Challenge}
        assert len(checker.writes) <= 6
    else:
        assert checker.writes == [Challenge, Verdict]
        assert verdict is not None
        assert 2 * P < verdict < 4 * P


def test_a_clock_that_jumps_ahead_brings_no_verdict_in_the_interval_of_the_challenge() -> None:
    checker = Checker(ModelServer([condition(kind) for kind in TYPES]))
    checker.act()
    checker.pass_time(P + 1)
    assert isinstance(checker.act(), Challenge)
    other = Checker(checker.server)
    other.memory = Sightings()
    checker.pass_time(5, jump=10 * P)
    assert isinstance(checker.act(), LookAgain)
    checker.pass_time(P)
    checker.act()
    assert checker.writes == [Challenge, Verdict]


def test_what_another_checker_writes_counts() -> None:
    server = ModelServer([condition(kind) for kind in TYPES])
    one, two = Checker(server), Checker(server)
    for checker in (one, two):
        checker.act()
    one.pass_time(P + 1)
    two.clock = one.clock
    one.act()
    two.act()
    assert two.memory.wait("it", two.clock, INTERVAL) == P


def test_a_refused_write_does_not_undo_what_another_checker_was_seen_to_write() -> None:
    """Its marks are often seen while our own write is on its way, which is why it is refused."""
    server = ModelServer([condition(kind) for kind in TYPES])
    memory = Sightings()
    memory.record(server.get(), server.now, 0.0)
    memory.note_write("it", 1.0)
    server.update(CHECKER, [one | {"message": _asking(one)} for one in server.conditions])
    memory.record(server.get(), server.now, 2.0)
    memory.write_refused("it", 1.0)
    assert memory.wait("it", 2.0, INTERVAL) == P


def test_a_version_older_than_one_that_was_seen_is_no_sign_of_life() -> None:
    """A look past the cache sees the mark of another checker; then the watch catches up."""
    server = ModelServer([condition(kind) for kind in TYPES])
    memory = Sightings()
    server.pass_time(P + 1)
    older = server.get()
    memory.record(older, server.now, float(P))
    server.update(CHECKER, [one | {"message": _asking(one)} for one in server.conditions])
    asked = memory.record(server.get(), server.now, P + 1.0)
    assert memory.record(older, server.now, P + 1.0) == asked
    assert memory.record(server.get(), server.now, P + 1.0) == asked


# --- what hides a dead operator


def entry(manager: str, types: tuple[str, ...], time: str, operation: str = "Update") -> Object:
    fields: Object = {f'k:{{"type":"{kind}"}}': {"f:message": {}, "f:status": {}} for kind in types}
    return {
        "manager": manager,
        "operation": operation,
        "subresource": "status",
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": fields}},
    }


def late(manager: str, types: tuple[str, ...]) -> Callable[[Object], None]:
    def add(obj: Object) -> None:
        now = stamp(START + timedelta(seconds=P))
        obj["metadata"]["managedFields"].append(entry(manager, types, now))

    return add


def dated(time: str) -> Callable[[Object], None]:
    def change(obj: Object) -> None:
        obj["metadata"]["managedFields"].append(entry("kubectl-edit", ("Available",), time))
        obj["metadata"]["creationTimestamp"] = time
        for one in obj["status"]["conditions"]:
            one["lastTransitionTime"] = time

    return change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(late("somebody", ("Disabled",)), id="another condition type"),
        pytest.param(late(ANCIENT, TYPES), id="more than ten managers"),
        pytest.param(late(PROBE, TYPES), id="a probe, run as a monitoring job"),
        pytest.param(dated("2099-01-01T00:00:00Z"), id="times in the future"),
        pytest.param(dated("9999-12-31T23:59:59Z"), id="times at the end of all times"),
    ],
)
def test_what_hides_no_dead_operator(change: Callable[[Object], None]) -> None:
    server = ModelServer([condition(kind) for kind in (*TYPES, "Disabled")])
    server.pass_time(P + 1)
    obj = server.get()
    change(obj)
    decision = decide(Case(object=obj, now=server.now, interval=INTERVAL))
    assert isinstance(decision, Challenge)


def test_a_lease_renewed_in_the_future_proves_nothing() -> None:
    server = ModelServer([condition(kind) for kind in TYPES])
    server.pass_time(P + 1)
    lease = Proof(START + timedelta(days=9000), "a lease")
    case = Case(object=server.get(), now=server.now, interval=INTERVAL, lease=lease)
    assert isinstance(decide(case), Challenge)


def test_a_challenge_dated_in_the_future_is_counted_from_when_it_was_seen() -> None:
    checker = Checker(ModelServer([condition(kind) for kind in TYPES]))
    checker.act()
    checker.pass_time(P + 1)
    checker.act()
    for _ in range(2):
        obj = checker.server.get()
        for one in obj["metadata"]["managedFields"]:
            one["time"] = "2099-01-01T00:00:00Z" if one["manager"] == CHECKER else one["time"]
        assert isinstance(checker.act(obj), LookAgain)
        checker.pass_time(P / 2 + 1)
    assert isinstance(checker.act(obj), Verdict)


def test_a_probe_that_was_killed_is_a_challenge_that_stands_for_two_intervals() -> None:
    """Never an answer, and never a verdict that says more than is true."""
    checker = Checker(ModelServer([condition(kind) for kind in TYPES]))
    checker.act()
    checker.pass_time(60)
    asked = [one | {"message": _asking(one)} for one in checker.server.conditions]
    checker.server.update(PROBE, asked)
    checker.act()
    checker.pass_time(P)
    assert isinstance(checker.act(), LookAgain)
    checker.pass_time(P + 1)
    checker.act()
    assert checker.writes == [Verdict]


def test_messages_that_a_probe_puts_back_are_no_sign_of_life() -> None:
    said = [condition(kind) for kind in TYPES]
    checker = Checker(ModelServer(said))
    checker.act()
    for _ in range(11):
        checker.pass_time(60)
        checker.server.update(PROBE, [one | {"message": _asking(one)} for one in said])
        checker.act()
        checker.server.update(PROBE, said)
        checker.act()
    assert checker.writes == [Challenge]


def _asking(one: Object) -> str:
    return (
        "Operator checking for stale status, the active operator will reset this message: "
        f"{one['message']}"
    )


# --- operators that have no way to answer


def applied(server: ModelServer, *, messages: bool = False) -> Object:
    obj = server.get()
    for one in obj["metadata"]["managedFields"]:
        if one["manager"] == OPERATOR:
            one["operation"] = "Apply"
            for fields in one["fieldsV1"]["f:status"]["f:conditions"].values():
                if not messages:
                    fields.pop("f:message", None)
    return obj


def test_one_that_applies_without_messages_is_not_asked() -> None:
    """Its unchanged apply is a no-op on the server and cannot remove our text."""
    server = ModelServer([silent(condition(kind)) for kind in TYPES])
    server.pass_time(10 * P)
    obj = applied(server)
    decision = decide(Case(object=obj, now=server.now, interval=INTERVAL))
    assert isinstance(decision, Nothing)
    assert decision.state is CheckState.UNCHECKABLE


def test_one_that_applies_messages_is_given_up_when_it_does_not_answer() -> None:
    """The challenge takes its message's ownership away; that is no reason to spare it."""
    server = ModelServer([condition(kind) for kind in TYPES])
    server.pass_time(P + 1)
    asked = [one | {"message": _asking(one)} for one in server.conditions]
    server.update(CHECKER, asked)
    assert not cannot_answer(applied(server))
    server.pass_time(P + 1)
    decision = decide(Case(object=applied(server), now=server.now, interval=INTERVAL))
    assert isinstance(decision, Verdict)


def test_a_text_that_one_without_messages_cannot_remove_is_taken_off() -> None:
    """Given up before it applied without messages, it takes its statuses back and no more."""
    said = [silent(condition(kind)) for kind in TYPES]
    server = ModelServer(said)
    given_up = [
        one | {"status": "Unknown", "message": verdict_message("", "True", 2 * P)} for one in said
    ]
    server.update(CHECKER, given_up)
    server.update(OPERATOR, [one | {"status": "True"} for one in given_up])
    decision = decide(Case(object=applied(server), now=server.now, interval=INTERVAL))
    assert isinstance(decision, Restore)
    assert decision.state is CheckState.UNCHECKABLE
    server.update(CHECKER, decision.conditions)
    settled = decide(Case(object=applied(server), now=server.now, interval=INTERVAL))
    assert isinstance(settled, Nothing)
    assert [one["message"] for one in server.conditions] == [""] * 4


@pytest.mark.parametrize("asked", [False, True])
def test_its_lease_speaks_for_one_that_cannot_answer(asked: bool) -> None:
    said = [silent(condition(kind)) for kind in TYPES]
    server = ModelServer(said)
    if asked:
        server.update(CHECKER, [one | {"message": _asking({"message": ""})} for one in said])
    server.pass_time(10 * P)
    fresh = Proof(server.now, "a lease")
    case = Case(object=applied(server), now=server.now, interval=INTERVAL, lease=fresh)
    assert isinstance(decide(case), Restore if asked else LookAgain)


def test_one_that_cannot_answer_is_asked_when_its_lease_is_no_longer_renewed() -> None:
    """Its Lease is its way to answer, so it can be given up too."""
    server = ModelServer([silent(condition(kind)) for kind in TYPES])
    lease = Proof(server.now, "a lease")
    server.pass_time(P + 1)
    case = Case(object=applied(server), now=server.now, interval=INTERVAL, lease=lease)
    assert isinstance(decide(case), Challenge)


def test_one_that_applies_messages_can_answer() -> None:
    server = ModelServer([condition(kind) for kind in TYPES])
    assert not cannot_answer(applied(server, messages=True))
    assert not cannot_answer(server.get()), "and so can one that updates"
    assert not cannot_answer(ModelServer([condition("Available")], atomic=True).get())


@pytest.mark.parametrize("writes", [[Challenge], [Challenge, Verdict]])
def test_a_lease_speaks_for_one_that_is_challenged_or_stale_already(writes: list[type]) -> None:
    checker = Checker(ModelServer([condition(kind) for kind in TYPES]))
    before = checker.server.conditions
    checker.act()
    for _ in writes:
        checker.pass_time(P + 1)
        checker.act()
    assert checker.writes == writes
    checker.pass_time(60)
    fresh = Proof(checker.server.now, "a lease")
    obj = checker.server.get()
    decision = decide(Case(object=obj, now=checker.server.now, interval=INTERVAL, lease=fresh))
    assert isinstance(decision, Restore)
    restored = [(one["status"], one["message"]) for one in decision.conditions]
    assert restored == [(one["status"], one["message"]) for one in before]


def test_who_once_wrote_an_empty_list_does_not_own_the_conditions() -> None:
    """Its entry looks like that of an atomic list's owner, and its time moves with other fields."""
    server = ModelServer([condition(kind) for kind in TYPES])
    server.pass_time(P + 1)
    obj = server.get()
    creator = entry("creator", (), stamp(server.now))
    obj["metadata"]["managedFields"].append(creator)
    assert isinstance(decide(Case(object=obj, now=server.now, interval=INTERVAL)), Challenge)
    mute = applied(ModelServer([silent(condition(kind)) for kind in TYPES]))
    mute["metadata"]["managedFields"].append(creator)
    assert cannot_answer(mute)
