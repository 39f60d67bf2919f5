"""When a definition, a roll-out, a Job and a ClusterOperator are ready."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.operators.cluster_version.sync.operator_health import (
    OPERATOR_TIMEOUT,
    operator_health,
)
from quarterdeck.operators.cluster_version.sync.progress import DONE, Done, Failed, Outcome, Waiting
from quarterdeck.payload.graph import Mode
from quarterdeck.status.rollout import (
    daemon_set,
    definition,
    deployment,
    job,
    stateful_set,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
LONG_AGO = "2026-01-01T00:00:00Z"


def condition(type_: str, status: str, reason: str = "", message: str = "", **rest: Any) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message, **rest}


def obj(spec: Object | None = None, **status: Any) -> Object:
    return {"metadata": {"generation": 2}, "spec": spec or {}, "status": status}


def rolled(wanted: int | None, updated: int, available: int, there: int, **rest: Any) -> Object:
    return obj(
        {} if wanted is None else {"replicas": wanted},
        observedGeneration=2,
        updatedReplicas=updated,
        readyReplicas=available,
        availableReplicas=available,
        replicas=there,
        **rest,
    )


def merged(live: Object, spec: Object) -> Object:
    return live | {"spec": live["spec"] | spec}


@pytest.mark.parametrize(
    ("live", "kind"),
    [
        pytest.param(rolled(3, 3, 3, 3), Done, id="all there"),
        pytest.param(rolled(None, 1, 1, 1), Done, id="one is the default"),
        pytest.param(rolled(0, 0, 0, 0), Done, id="none wanted"),
        pytest.param(rolled(3, 3, 2, 3), Waiting, id="one is not available"),
        pytest.param(rolled(3, 1, 3, 4), Waiting, id="old ones are available, new ones come"),
        pytest.param(rolled(3, 3, 3, 4), Waiting, id="an old one is still there"),
        pytest.param(obj({"replicas": 1}), Waiting, id="nobody has looked at it"),
        pytest.param(obj({"replicas": 0}, observedGeneration=1), Waiting, id="not at this form"),
        pytest.param(
            rolled(1, 1, 0, 1, conditions=[condition("Progressing", "False", "Late", "too late")]),
            Failed,
            id="past its deadline",
        ),
        pytest.param(
            rolled(1, 0, 0, 0, conditions=[condition("ReplicaFailure", "True", "No", "quota")]),
            Failed,
            id="its pods are refused",
        ),
        pytest.param(
            rolled(1, 1, 1, 1, conditions=[condition("Progressing", "False", "Late", "too late")]),
            Done,
            id="late but there",
        ),
    ],
)
def test_deployment(live: Object, kind: type[Outcome]) -> None:
    assert isinstance(deployment(live), kind)


def test_a_deployment_that_is_paused_says_what_to_do_unless_it_is_rolled_out() -> None:
    """Its controller leaves the old pods where they are, for good."""
    found = deployment(merged(rolled(3, 0, 3, 3), {"paused": True}))
    assert isinstance(found, Waiting)
    assert "set spec.paused to false" in found.message
    assert deployment(merged(rolled(3, 3, 3, 3), {"paused": True})) == DONE


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        pytest.param((0, 0, 0), Done, id="no node wants it"),
        pytest.param((2, 2, 2), Done, id="on all nodes"),
        pytest.param((2, 1, 2), Waiting, id="on one node still the old one"),
        pytest.param((2, 2, 1), Waiting, id="on one node not available"),
    ],
)
def test_daemon_set(status: tuple[int, int, int], kind: type[Outcome]) -> None:
    fields = ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
    live = obj(observedGeneration=2)
    live["status"] |= dict(zip(fields, status, strict=True))
    assert isinstance(daemon_set(live), kind)
    live["status"]["observedGeneration"] = 1
    assert isinstance(daemon_set(live), Waiting)


def test_a_daemon_set_that_is_updated_by_hand_is_not_waited_for() -> None:
    live = obj({"updateStrategy": {"type": "OnDelete"}}, observedGeneration=2)
    live["status"] |= {"desiredNumberScheduled": 2, "numberAvailable": 2}
    assert daemon_set(live) == DONE


def partition(number: int) -> Object:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}}


@pytest.mark.parametrize(
    ("live", "kind"),
    [
        pytest.param(rolled(3, 3, 3, 3), Done, id="all there"),
        pytest.param(rolled(None, 1, 1, 1), Done, id="one is the default"),
        pytest.param(rolled(0, 0, 0, 0), Done, id="none wanted"),
        pytest.param(rolled(3, 3, 2, 3), Waiting, id="one is not ready"),
        pytest.param(rolled(3, 1, 3, 3), Waiting, id="two are of the old form"),
        pytest.param(rolled(3, 3, 3, 4), Done, id="one too many is still there, as for kubectl"),
        pytest.param(obj({"replicas": 1}), Waiting, id="nobody has looked at it"),
        pytest.param(
            merged(rolled(3, 1, 3, 3), spec=partition(2)), Done, id="two are meant to stay"
        ),
        pytest.param(
            merged(rolled(3, 0, 3, 3), spec={"updateStrategy": {"type": "OnDelete"}}),
            Done,
            id="updated by hand",
        ),
    ],
)
def test_stateful_set(live: Object, kind: type[Outcome]) -> None:
    assert isinstance(stateful_set(live), kind)


@pytest.mark.parametrize(
    ("conditions", "kind"),
    [
        ([], Waiting),
        ([condition("Complete", "True")], Done),
        ([condition("Failed", "True", "BackoffLimitExceeded", "too often")], Failed),
        ([condition("Failed", "False")], Waiting),
    ],
)
def test_job(conditions: list[Object], kind: type[Outcome]) -> None:
    assert isinstance(job(obj(conditions=conditions)), kind)


def test_a_failed_job_says_why_and_how_to_run_it_again() -> None:
    failed = job(obj(conditions=[condition("Failed", "True", "BackoffLimitExceeded", "too often")]))
    assert "BackoffLimitExceeded: too often" in failed.message
    assert "delete the Job" in failed.message


@pytest.mark.parametrize(
    ("conditions", "kind"),
    [
        ([], Waiting),
        ([condition("NamesAccepted", "True"), condition("Established", "False")], Waiting),
        ([condition("Established", "True")], Done),
        ([condition("NamesAccepted", "False", "ListKindConflict", "in use")], Failed),
    ],
)
def test_definition(conditions: list[Object], kind: type[Outcome]) -> None:
    assert isinstance(definition(obj(conditions=conditions)), kind)


VERDICT = (
    "Operator has not updated this condition for more than 20 minutes, last known condition "
    'state was "True", original message: all is well'
)
CHALLENGE = (
    "Operator checking for stale status, the active operator will reset this message: all is well"
)


def operator(*conditions: Object, version: str = "2", created: str = LONG_AGO) -> Object:
    versions = [{"name": "operator", "version": version}] if version else []
    return {
        "metadata": {"name": "x", "creationTimestamp": created},
        "status": {"conditions": list(conditions), "versions": versions},
    }


AVAILABLE = condition("Available", "True")
FINE = condition("Degraded", "False")


def degraded(status: str, ago: timedelta) -> Object:
    return condition("Degraded", status, "Sick", "hot", lastTransitionTime=(NOW - ago).isoformat())


def health(live: Object, mode: Mode, expected: dict[str, str] | None = None) -> Outcome:
    return operator_health(live, {"operator": "2"} if expected is None else expected, mode, NOW)


@pytest.mark.parametrize("mode", Mode)
def test_an_operator_that_is_well_and_at_its_version_is_done(mode: Mode) -> None:
    assert health(operator(AVAILABLE, FINE), mode) == DONE
    progressing = condition("Progressing", "True")
    assert health(operator(AVAILABLE, FINE, progressing), mode) == DONE


@pytest.mark.parametrize("mode", Mode)
def test_no_expected_versions_fail_before_anything_else(mode: Mode) -> None:
    found = health(operator(), mode, {})
    assert isinstance(found, Failed)
    assert found.reason == "ClusterOperatorNoVersions"


@pytest.mark.parametrize("mode", [Mode.UPDATING, Mode.RECONCILING])
@pytest.mark.parametrize("status", ["False", "Unknown", ""])
def test_not_available_fails_also_when_degraded_and_behind(mode: Mode, status: str) -> None:
    sick = degraded("True", OPERATOR_TIMEOUT * 2)
    found = health(operator(condition("Available", status, "Down"), sick, version="1"), mode)
    assert isinstance(found, Failed)
    assert found.reason == "ClusterOperatorNotAvailable"


def test_not_available_is_waited_for_on_a_new_cluster_and_fails_after_a_while() -> None:
    down = condition("Available", "False")
    young = operator(down, created=(NOW - timedelta(minutes=1)).isoformat())
    assert isinstance(health(young, Mode.INITIALIZING), Waiting)
    assert isinstance(health(young, Mode.UPDATING), Failed)
    assert isinstance(health(operator(down), Mode.INITIALIZING), Failed)


@pytest.mark.parametrize("mode", Mode)
def test_an_operator_that_has_never_spoken_is_waited_for_and_fails_after_a_while(
    mode: Mode,
) -> None:
    young = operator(created=(NOW - timedelta(minutes=1)).isoformat())
    assert isinstance(health(young, mode), Waiting)
    assert isinstance(health(operator(), mode), Failed)


@pytest.mark.parametrize("mode", Mode)
def test_the_verdict_of_staleness_counts_as_not_available(mode: Mode) -> None:
    found = health(operator(condition("Available", "Unknown", "", VERDICT), FINE), mode)
    assert isinstance(found, Failed)
    assert found.reason == "ClusterOperatorStale"


@pytest.mark.parametrize("mode", Mode)
def test_a_mere_challenge_changes_nothing(mode: Mode) -> None:
    checked = condition("Available", "True", "", CHALLENGE)
    assert health(operator(checked, FINE), mode) == DONE


@pytest.mark.parametrize("status", ["True", "Unknown"])
@pytest.mark.parametrize("mode", [Mode.UPDATING, Mode.RECONCILING])
def test_degraded_is_waited_for_and_fails_only_after_a_while(mode: Mode, status: str) -> None:
    for ago, kind in ((OPERATOR_TIMEOUT / 2, Waiting), (OPERATOR_TIMEOUT, Failed)):
        found = health(operator(AVAILABLE, degraded(status, ago)), mode)
        assert isinstance(found, kind)
        assert found.reason == "ClusterOperatorDegraded"


def test_degraded_is_only_noted_while_initializing() -> None:
    sick = degraded("True", OPERATOR_TIMEOUT * 2)
    found = health(operator(AVAILABLE, sick), Mode.INITIALIZING)
    assert isinstance(found, Done)
    assert found.reason == "ClusterOperatorDegraded"
    behind = health(operator(AVAILABLE, sick, version="1"), Mode.INITIALIZING)
    assert isinstance(behind, Waiting)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("version", ["1", "3", ""])
def test_another_version_is_waited_for(mode: Mode, version: str) -> None:
    found = health(operator(AVAILABLE, FINE, version=version), mode)
    assert isinstance(found, Waiting)
    assert found.reason == "ClusterOperatorUpdating"
    assert "not 2" in found.message


@pytest.mark.parametrize("mode", [Mode.UPDATING, Mode.RECONCILING])
def test_an_operator_that_never_says_whether_it_is_degraded_fails_after_the_same_while(
    mode: Mode,
) -> None:
    young = operator(AVAILABLE, created=(NOW - OPERATOR_TIMEOUT / 2).isoformat())
    assert isinstance(health(young, mode), Waiting)
    old = operator(AVAILABLE, created=(NOW - OPERATOR_TIMEOUT).isoformat())
    assert isinstance(health(old, mode), Failed)


def test_an_operator_that_never_spoke_has_its_time_from_when_it_was_waited_for() -> None:
    """Its ClusterOperator is made when the update begins, long before its Deployment."""

    def after(minutes: int) -> Outcome:
        asked = NOW - timedelta(minutes=minutes)
        return operator_health(operator(version=""), {"operator": "2"}, Mode.UPDATING, NOW, asked)

    assert isinstance(after(minutes=9), Waiting)
    assert isinstance(after(minutes=11), Failed)
