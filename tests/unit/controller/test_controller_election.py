"""Who leads, on an injected clock."""

from datetime import UTC, datetime

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from quarterdeck.api.meta import Object
from quarterdeck.controller.election import Candidate, Timing, Wait, WriteLease

WALL = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)
TIMING = Timing(duration=15, deadline=10, retry=2)


def candidate(identity: str = "me") -> Candidate:
    return Candidate(namespace="ns", name="lease", identity=identity, timing=TIMING)


def lease(holder: str, *, version: str = "1", transitions: int = 3, **spec: object) -> Object:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "lease", "namespace": "ns", "uid": "u", "resourceVersion": version},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "leaseTransitions": transitions,
            **spec,
        },
    }


def test_a_lease_that_does_not_exist_is_created() -> None:
    step = candidate().look(None, now=0, wall=WALL)
    assert isinstance(step, WriteLease)
    assert step.verb == "create"
    assert step.lease["metadata"] == {"namespace": "ns", "name": "lease"}
    assert step.lease["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
        "acquireTime": "2026-01-02T03:04:05.000678Z",
        "renewTime": "2026-01-02T03:04:05.000678Z",
    }


def test_a_lease_that_was_handed_back_is_taken_at_once() -> None:
    step = candidate().look(lease("", preferredHolder="x"), now=0, wall=WALL)
    assert isinstance(step, WriteLease)
    assert step.verb == "update"
    assert step.lease["spec"]["leaseTransitions"] == 4
    assert step.lease["spec"]["preferredHolder"] == "x", "fields that we do not know stay"
    assert step.lease["metadata"]["resourceVersion"] == "1", "the write is fenced"


def test_somebody_elses_lease_is_taken_only_when_it_stood_still_for_its_duration() -> None:
    """Measured from when we first saw it so, on our own clock."""
    me = candidate()
    assert me.look(lease("other"), now=100, wall=WALL) == Wait(2, "other")
    assert me.look(lease("other"), now=114, wall=WALL) == Wait(1, "other")
    assert isinstance(me.look(lease("other"), now=115, wall=WALL), WriteLease)


def test_a_renewal_that_we_see_starts_the_wait_again() -> None:
    me = candidate()
    me.look(lease("other", version="1"), now=100, wall=WALL)
    assert isinstance(me.look(lease("other", version="2"), now=115, wall=WALL), Wait)
    assert isinstance(me.look(lease("other", version="2"), now=130, wall=WALL), WriteLease)


def test_times_that_another_machine_wrote_do_not_matter() -> None:
    """A leader whose clock is a year behind keeps its Lease."""
    old = lease("other", renewTime="2025-01-01T00:00:00.000000Z")
    assert isinstance(candidate().look(old, now=0, wall=WALL), Wait)


def test_renewing_keeps_the_time_of_taking_and_the_number_of_transitions() -> None:
    mine = lease("me", acquireTime="then", transitions=7)
    step = candidate().look(mine, now=0, wall=WALL)
    assert isinstance(step, WriteLease)
    assert step.lease["spec"]["acquireTime"] == "then"
    assert step.lease["spec"]["leaseTransitions"] == 7


def test_leadership_counts_from_when_the_renewal_was_sent() -> None:
    me = candidate()
    assert not me.leads(100)
    me.won(sent_at=100)
    assert me.leads(109.9)
    assert me.remaining(104) == 6
    assert not me.leads(110)
    me.won(sent_at=105)
    me.resigned()
    assert not me.leads(105)


def test_a_lease_that_is_handed_back_names_nobody() -> None:
    back = candidate().released(lease("me"), WALL)
    assert back["spec"]["holderIdentity"] == ""
    assert back["metadata"]["resourceVersion"] == "1"


def test_a_duration_of_part_of_a_second_is_rounded_up() -> None:
    """The field holds whole seconds; others must not wait less than they should."""
    me = Candidate(
        namespace="", name="l", identity="me", timing=Timing(duration=2.5, deadline=2, retry=1)
    )
    step = me.look(None, now=0, wall=WALL)
    assert isinstance(step, WriteLease)
    assert step.lease["spec"]["leaseDurationSeconds"] == 3


@pytest.mark.parametrize(
    ("duration", "deadline", "retry"),
    [
        pytest.param(10, 10, 2, id="the deadline has to be before the Lease runs out"),
        pytest.param(15, 2, 2, id="there has to be time for a second try"),
        pytest.param(15, 10, 0, id="the retry period is not zero"),
    ],
)
def test_times_that_could_give_two_leaders_are_refused(
    duration: float, deadline: float, retry: float
) -> None:
    with pytest.raises(ValueError, match="the defaults are 15, 10, 2"):
        Timing(duration=duration, deadline=deadline, retry=retry)


class NeverTwoLeaders(RuleBasedStateMachine):
    """However three candidates look, pause and write, at most one of them may write."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.server: Object | None = None
        self.version = 0
        self.all = [candidate(f"c{i}") for i in range(3)]
        self.on_the_way: list[tuple[Candidate, WriteLease, float]] = []

    @rule(seconds=st.floats(0, 20))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(who=st.integers(0, 2))
    def look(self, who: int) -> None:
        step = self.all[who].look(self.server, now=self.now, wall=WALL)
        if isinstance(step, WriteLease):
            self.on_the_way.append((self.all[who], step, self.now))

    @rule(data=st.data())
    def a_write_arrives(self, data: st.DataObject) -> None:
        if not self.on_the_way:
            return
        index = data.draw(st.integers(0, len(self.on_the_way) - 1))
        who, step, sent_at = self.on_the_way.pop(index)
        wanted = step.lease["metadata"].get("resourceVersion")
        have = self.server["metadata"]["resourceVersion"] if self.server else None
        if wanted != have:
            return
        self.version += 1
        metadata = {**step.lease["metadata"], "uid": "u", "resourceVersion": str(self.version)}
        self.server = {**step.lease, "metadata": metadata}
        who.won(sent_at=sent_at)

    @invariant()
    def at_most_one_leads(self) -> None:
        assert sum(it.leads(self.now) for it in self.all) <= 1


TestNeverTwoLeaders = NeverTwoLeaders.TestCase
