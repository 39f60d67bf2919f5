"""What stands still for too long is a failure, and none any more when it moves."""

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.operators.cluster_version.sync.progress import DONE, Failed, Waiting
from quarterdeck.operators.cluster_version.sync.standstill import (
    STANDSTILL_TIMEOUT,
    Standstill,
    judge_wait,
    timeout_for,
)
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import ObjectIdentity

NONE_YET = Waiting("DaemonSetNotReady", "on 0 of 2 nodes")
ONE = Waiting("DaemonSetNotReady", "on 1 of 2 nodes")


def test_a_wait_that_stays_the_same_fails_after_a_while_and_goes_on_when_it_moves() -> None:
    outcome, seen = judge_wait(NONE_YET, None, 600, 1000.0)
    assert outcome == NONE_YET
    outcome, seen = judge_wait(NONE_YET, seen, 600, 1599.0)
    assert outcome == NONE_YET
    outcome, seen = judge_wait(NONE_YET, seen, 600, 1600.0)
    assert isinstance(outcome, Failed)
    assert outcome.reason == NONE_YET.reason
    assert outcome.message.startswith("on 0 of 2 nodes; nothing has changed for 10 minutes; ")
    assert judge_wait(NONE_YET, seen, 600, 9999.0)[0] == outcome, "the same words, for ever"
    assert judge_wait(ONE, seen, 600, 1700.0) == (ONE, Standstill(ONE.message, 1700.0))


def test_what_is_done_or_has_failed_is_not_waited_for() -> None:
    before = Standstill("x", 0.0)
    for outcome in (DONE, Failed("JobFailed", "x")):
        assert judge_wait(outcome, before, 600, 9999.0) == (outcome, None)


@pytest.mark.parametrize(
    ("group", "kind", "live", "seconds"),
    [
        pytest.param("apps", "DaemonSet", {}, STANDSTILL_TIMEOUT, id="a DaemonSet"),
        pytest.param("apps", "StatefulSet", {}, STANDSTILL_TIMEOUT, id="a StatefulSet"),
        pytest.param("apps", "Deployment", {}, STANDSTILL_TIMEOUT, id="a Deployment"),
        pytest.param(
            "apps",
            "Deployment",
            {"spec": {"progressDeadlineSeconds": 3600}},
            3600,
            id="a Deployment with a longer deadline of its own",
        ),
        pytest.param(
            "batch", "Job", {"status": {"active": 1}}, STANDSTILL_TIMEOUT, id="a Job that waits"
        ),
        pytest.param("batch", "Job", {"status": {"ready": 1}}, None, id="a Job that works"),
        pytest.param("", "ConfigMap", {}, None, id="anything else"),
    ],
)
def test_how_long(group: str, kind: str, live: Object, seconds: float | None) -> None:
    identity = ObjectIdentity(group, kind, "ns", "x")
    assert timeout_for(identity, live, Mode.UPDATING) == seconds
    assert timeout_for(identity, live, Mode.INITIALIZING) == seconds
    assert timeout_for(identity, live, Mode.RECONCILING) is None
