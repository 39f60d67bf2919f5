"""The smaller decisions of the staleness checker: grace, leases, objects without managedFields."""

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
)

from quarterdeck.api.meta import Key, Object
from quarterdeck.kube import ApiError
from quarterdeck.kube.errors import Status, error_from_status
from quarterdeck.operators.staleness.controller import cannot_write
from quarterdeck.operators.staleness.decide import Case, Challenge, Decision, Verdict, decide
from quarterdeck.operators.staleness.evidence import Proof, Sighting, evidence_of
from quarterdeck.operators.staleness.grace import Grace
from quarterdeck.operators.staleness.leases import (
    is_valid_name,
    latest_proof,
    named_leases,
    renewal,
)
from quarterdeck.operators.staleness.sightings import Sightings

INTERVAL = timedelta(minutes=10)
LIMIT = INTERVAL.total_seconds()


# --- grace


def beating(seconds: float, until: float) -> Grace:
    """A grace period whose checker has run since 0, and whose server has answered since then."""
    grace = Grace(seconds, monotonic=0, wall=5000)
    for second in range(1, int(until) + 1):
        grace.pulse(second, 5000 + second)
    return grace


def test_nothing_is_written_right_after_the_start() -> None:
    assert beating(30, until=0).left(0, 5000) == 30
    assert beating(30, until=29).left(29, 5029) == 1
    assert beating(30, until=30).left(30, 5030) == 0


@pytest.mark.parametrize(
    "wall", [pytest.param(8600, id="slept for an hour"), pytest.param(4000, id="set back")]
)
def test_grace_begins_again_when_the_clocks_disagree(wall: float) -> None:
    grace = beating(30, until=60)
    assert grace.left(60, 5060) == 0
    assert grace.left(61, wall) == 30
    grace.pulse(61, wall)
    grace.pulse(65, wall + 4)
    assert grace.left(66, wall + 5) == 25


def test_grace_begins_again_when_the_server_is_reached_after_an_outage() -> None:
    grace = beating(30, until=100)
    assert grace.left(100, 5100) == 0
    assert grace.left(100, 5100, reached=90) == 20


@pytest.mark.parametrize("first", ["the pulse", "a reconcile"])
def test_grace_begins_again_after_a_standstill_whoever_notices_it_first(first: str) -> None:
    """The process was paused, or the server hung: both clocks went on, so they agree."""
    grace = beating(30, until=60)
    assert grace.left(65, 5065) == 0, "a short gap is no standstill"
    if first == "the pulse":
        grace.pulse(700, 5700)
    assert grace.left(700, 5700) == 30
    grace.pulse(700.5, 5700.5)
    assert 29 < grace.left(700.6, 5700.6) < 30


def test_while_the_server_is_silent_the_grace_period_does_not_pass() -> None:
    grace = beating(30, until=60)
    assert [grace.left(60 + n, 5060 + n) for n in range(10, 100, 10)] == [30] * 9
    assert grace.silent_for(160) == 100
    grace.pulse(160, 5160)
    assert grace.silent_for(161) == 0


def test_clocks_that_drift_slowly_are_no_sleep() -> None:
    grace = Grace(30, monotonic=0, wall=0)
    for second in range(1, 10_000):
        grace.pulse(second, second * 1.001)
    assert grace.left(10_000, 10_010) == 0


# --- leases

RELATED = [
    {"group": "coordination.k8s.io", "resource": "leases", "namespace": "ns", "name": "lock"},
    {"group": "coordination.k8s.io", "resource": "leases", "name": "nowhere"},
    {"group": "", "resource": "namespaces", "name": "ns"},
    "nonsense",
]


@pytest.mark.parametrize(
    ("annotations", "status", "expected"),
    [
        pytest.param({"quarterdeck.dev/lease-proves-life": "true"}, RELATED, 1, id="asked for"),
        pytest.param({"quarterdeck.dev/lease-proves-life": "yes"}, RELATED, 0, id="another word"),
        pytest.param(None, RELATED, 0, id="not asked for"),
        pytest.param({"quarterdeck.dev/lease-proves-life": "true"}, None, 0, id="none named"),
    ],
)
def test_a_lease_counts_only_where_it_is_named_and_asked_for(
    annotations: Any, status: Any, expected: int
) -> None:
    obj = {"metadata": {"annotations": annotations}, "status": {"relatedObjects": status}}
    assert named_leases(obj) == [Key("ns", "lock")][:expected]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lock", True),
        ("a.b-c", True),
        ("a/b", False),
        ("../x", False),
        ("a b", False),
        ("Ä", False),
        pytest.param("a" * 254, False, id="too long"),
    ],
)
def test_a_lease_name_that_is_no_name_is_not_asked_for(name: str, expected: bool) -> None:
    assert is_valid_name(Key("ns", name)) is expected
    assert is_valid_name(Key(name, "lock")) is expected


def refusal(code: int, message: str) -> ApiError:
    return error_from_status("PATCH", "/", Status(code=code, message=message))


RIGHT = 'clusteroperators "it" is forbidden: User "me" cannot patch resource'
POLICY = "clusteroperators \"it\" is forbidden: ValidatingAdmissionPolicy 'x' denied request"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        pytest.param(refusal(403, RIGHT), "may not patch", id="a right is missing"),
        pytest.param(refusal(403, POLICY), None, id="a policy about one object"),
        pytest.param(refusal(401, POLICY), None, id="a policy chooses its code"),
        *(
            pytest.param(
                refusal(code, 'admission webhook "x" denied the request: no'),
                None,
                id=f"a webhook says {code}",
            )
            for code in (401, 404, 409, 410)
        ),
        pytest.param(
            refusal(429, 'admission webhook "x" denied the request: no'),
            None,
            id="so may a webhook",
        ),
        pytest.param(refusal(422, "message: Too long"), None, id="no room in one object"),
        pytest.param(refusal(500, "etcdserver: request is too large"), None, id="nor in another"),
        pytest.param(refusal(500, "etcdserver: leader changed"), None, id="may be carried out"),
        pytest.param(
            refusal(500, 'failed calling webhook "x": refused'), "webhook", id="a webhook is down"
        ),
        pytest.param(refusal(429, "too many requests"), "too many", id="the server is busy"),
        pytest.param(refusal(401, "Unauthorized"), "Unauthorized", id="a certificate has expired"),
    ],
)
def test_what_keeps_a_checker_from_writing_to_anybody(error: ApiError, why: str | None) -> None:
    """Only that makes it not ready; what refuses one operator says nothing about the others."""
    said = cannot_write(error)
    assert said is None if why is None else why in (said or "")


def lease(*entries: Object) -> Object:
    return {"metadata": {"name": "lock", "namespace": "ns", "managedFields": list(entries)}}


def test_a_renewal_is_dated_by_the_server() -> None:
    """By the entry that owns renewTime; who labels a Lease does not prove that its holder lives."""
    renewed = {
        "manager": "holder",
        "time": "2026-01-01T12:00:00Z",
        "fieldsV1": {"f:spec": {"f:renewTime": {}}},
    }
    labelled = {
        "manager": "kubectl-label",
        "time": "2026-01-01T13:00:00Z",
        "fieldsV1": {"f:metadata": {"f:labels": {}}},
    }
    assert renewal(lease(renewed, labelled)) == Proof(START, "a renewal of Lease ns/lock")
    assert renewal(lease(labelled)) is None
    assert renewal(lease()) is None


def test_of_several_leases_the_newest_counts() -> None:
    old, new = Proof(START, "old"), Proof(START + INTERVAL, "new")
    assert latest_proof([old, None, new]) is new
    assert latest_proof([None]) is None


@pytest.mark.parametrize(
    ("later", "by"),
    [
        pytest.param(1, f"a write by {OPERATOR}", id="rounded up to the next second"),
        pytest.param(2, "a change that this checker saw", id="the object does not date it"),
    ],
)
def test_a_sighting_is_named_by_the_write_that_was_seen(later: int, by: str) -> None:
    model = server()
    model.update(OPERATOR, changed(model.conditions, "Available", reason="New"))
    seen = Sighting(START + timedelta(seconds=later), None)
    found = evidence_of(model.get(), START + INTERVAL, seen=seen)
    assert found.alive == Proof(START + timedelta(seconds=later), by)


# --- without managedFields


class Blind:
    """A checker that is shown objects without managedFields."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.sightings = Sightings()

    def act(self) -> Decision:
        obj = self.server.get(managed_fields=False)
        seen = self.sightings.record(obj, self.server.now)
        decision = decide(Case(object=obj, now=self.server.now, interval=INTERVAL, seen=seen))
        if isinstance(decision, Challenge | Verdict):
            self.server.update(CHECKER, decision.conditions)
            self.sightings.record(self.server.get(managed_fields=False), self.server.now)
        return decision


def server() -> ModelServer:
    return ModelServer([condition(kind) for kind in TYPES])


def test_without_managed_fields_a_dead_operator_is_given_up_too() -> None:
    """From the time at which it was first seen."""
    checker = Blind(server())
    checker.server.pass_time(3600)
    kinds = []
    for _ in range(50):
        kinds.append(type(checker.act()).__name__)
        checker.server.pass_time(60)
    assert [kind for kind in kinds if kind in ("Challenge", "Verdict")] == ["Challenge", "Verdict"]
    assert kinds.index("Challenge") == 11
    assert kinds.index("Verdict") == 22


def test_without_managed_fields_an_answer_counts_from_when_it_is_seen() -> None:
    checker = Blind(server())
    fine = checker.server.conditions
    writes = []
    for _ in range(240):
        if isinstance(decision := checker.act(), Challenge | Verdict):
            writes.append(type(decision))
        else:
            checker.server.update(OPERATOR, fine)
        checker.server.pass_time(30)
    assert writes == [Challenge] * 10, "one in eleven and a half minutes, and never a verdict"


def test_without_managed_fields_a_new_reason_is_a_sign_of_life() -> None:
    checker = Blind(server())
    checker.act()
    checker.server.pass_time(LIMIT + 1)
    assert isinstance(checker.act(), Challenge)
    checker.server.pass_time(LIMIT)
    checker.server.update(
        OPERATOR, changed(checker.server.conditions, "Available", reason="StillHere")
    )
    checker.act()
    checker.server.pass_time(LIMIT)
    assert not isinstance(checker.act(), Verdict)


def test_a_checker_that_starts_blind_waits_longer_and_never_shorter() -> None:
    checker = Blind(server())
    checker.act()
    checker.server.pass_time(LIMIT + 1)
    assert isinstance(checker.act(), Challenge)
    checker.server.pass_time(LIMIT - 1)
    restarted = Blind(checker.server)
    restarted.act()
    restarted.server.pass_time(LIMIT)
    assert not isinstance(restarted.act(), Verdict)
    restarted.server.pass_time(1)
    assert isinstance(restarted.act(), Verdict)


def test_an_object_of_the_same_name_is_another_one() -> None:
    sightings = Sightings()
    model = server()
    first = model.get(managed_fields=False)
    sightings.record(first, START)
    second = model.get(managed_fields=False, uid="2")
    later = START + INTERVAL
    seen = sightings.record(second, later)
    assert seen is not None
    assert seen.alive == later
    dated = Sightings().record(model.get(), later)
    assert dated.alive == START, "an object that dates its writes itself needs no first sight"


def test_a_sign_of_life_outlives_a_clock_that_is_set_back() -> None:
    """What the operator wrote then lies in the server's future, and was seen all the same."""
    sightings, clock = Sightings(), 100.0
    obj = server().get()
    sightings.record(obj, START, clock)
    back = START - timedelta(minutes=3)
    assert sightings.record(obj, back, clock).alive == back
    assert sightings.record(obj, back + INTERVAL, clock + 600).alive == back


def test_a_sign_of_life_from_the_future_is_one_of_the_first_look() -> None:
    """Of two servers one is ahead; who starts again must not take an answer for no answer."""
    sightings, obj = Sightings(), server().get()
    behind = START - timedelta(minutes=3)
    assert sightings.record(obj, behind, 0.0).alive == behind
    assert sightings.record(obj, behind + INTERVAL, 600.0).alive == behind, "and only once"
