"""Whether an operator is stale: one rule for everybody who asks."""

from datetime import timedelta

import pytest
from tests.unit.operators.staleness.model import (
    CHECKER,
    START,
    TYPES,
    ModelServer,
    changed,
    condition,
    stamp,
)

from quarterdeck.operators.cluster_version.sync.operator_health import operator_health
from quarterdeck.operators.cluster_version.sync.progress import Failed
from quarterdeck.operators.staleness.decide import (
    Case,
    Challenge,
    CheckState,
    Decision,
    Verdict,
    decide,
)
from quarterdeck.payload.graph import Mode
from quarterdeck.status import health
from quarterdeck.status.health import health_of
from quarterdeck.status.staleness import is_stale, plain_conditions

INTERVAL = timedelta(minutes=10)


def given_up(*, keep: bool) -> ModelServer:
    """A dead operator that forbade upgrades, after the verdict of a checker."""
    conditions = [condition(kind) for kind in TYPES]
    server = ModelServer(changed(conditions, "Upgradeable", status="False"))
    for kind in (Challenge, Verdict):
        server.pass_time(601)
        decision = decided(server, keep=keep)
        assert isinstance(decision, kind)
        server.update(CHECKER, decision.conditions)
    return server


def decided(server: ModelServer, *, keep: bool) -> Decision:
    return decide(
        Case(
            object=server.get(),
            now=server.now,
            interval=INTERVAL,
            keep_upgradeable_false=keep,
        )
    )


@pytest.mark.parametrize("keep", [False, True])
def test_everybody_says_the_same_about_one_that_forbade_upgrades(keep: bool) -> None:
    """With --keep-upgradeable-false people read `unknown` where the checker says stale."""
    server = given_up(keep=keep)
    assert decided(server, keep=keep).state is CheckState.STALE
    assert health_of(server.get()).state is health.OperatorState.STALE
    found = operator_health(server.get(), {"operator": "1"}, Mode.UPDATING, server.now)
    assert isinstance(found, Failed)
    assert found.reason == "ClusterOperatorStale"


def test_one_that_forbids_upgrades_after_the_verdict_is_alive_to_everybody() -> None:
    server = given_up(keep=False)
    server.pass_time(60)
    news = changed(
        server.conditions,
        "Upgradeable",
        status="False",
        message="I am back",
        lastTransitionTime=stamp(server.now),
    )
    server.update("their-operator", news)
    assert decided(server, keep=False).state is CheckState.ALIVE
    assert health_of(server.get()).state is health.OperatorState.UNKNOWN


def test_one_that_answered_in_part_is_not_stale() -> None:
    server = given_up(keep=False)
    server.update("their-operator", changed(server.conditions, "Degraded", message="back"))
    assert not is_stale(plain_conditions(server.conditions))


def test_no_conditions_are_not_stale() -> None:
    assert not is_stale(())
    assert not is_stale(plain_conditions([condition("Upgradeable", "False")]))


def test_a_verdict_on_another_type_is_the_operators_own_text() -> None:
    one = given_up(keep=False).condition("Available") | {"type": "Other"}
    assert not is_stale(plain_conditions([one, condition("Available", since=START)]))


def test_odd_times_are_read_as_none() -> None:
    (one,) = plain_conditions([{"type": "Available", "lastTransitionTime": 5, "message": None}])
    assert one.last_transition_time is None
    assert one.message == ""
