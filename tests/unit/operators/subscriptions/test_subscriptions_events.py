"""Which events follow from a status, and which phase from a held Deployment."""

from datetime import UTC, datetime

from quarterdeck.api.conditions import Condition
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersionStatus
from quarterdeck.operators.subscriptions.announce import StatusEvent, faults_changed
from quarterdeck.operators.subscriptions.config.faults import ConfigFailureReason, ConfigFault
from quarterdeck.operators.subscriptions.install.phase import (
    DeploymentResult,
    Phase,
    PhaseResult,
    phase_changed,
    phase_of_deployments,
)
from quarterdeck.operators.subscriptions.local_default import local_objects
from quarterdeck.status import rollout

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def fault(
    type_: str = "ConfigFailure", reason: str = "EnvFailure", message: str = "m"
) -> Condition:
    return Condition(
        type=type_, status="True", reason=reason, message=message, last_transition_time=NOW
    )


def test_a_fault_that_comes_changes_and_goes() -> None:
    assert list(faults_changed([], [fault()])) == [
        StatusEvent(type="Warning", reason="EnvFailure", note="m")
    ]
    assert list(faults_changed([fault()], [fault()])) == []
    (changed,) = faults_changed([fault()], [fault(message="other")])
    assert changed.note == "other"
    (gone,) = faults_changed([fault()], [])
    assert (gone.type, gone.reason) == ("Normal", "ConfigFailureResolved")


def test_what_only_waits_is_no_warning() -> None:
    waiting = fault("InstallPlanPending", "RequiresApproval")
    (made,) = faults_changed([], [waiting], harmless=["InstallPlanPending"])
    assert made.type == "Normal"
    assert list(faults_changed([waiting], [], harmless=["InstallPlanPending"])) == []


def status(phase: Phase, reason: str = "r", message: str = "m") -> ClusterServiceVersionStatus:
    return ClusterServiceVersionStatus(phase=phase, reason=reason, message=message)


def test_phases_that_are_worth_an_event() -> None:
    failed = PhaseResult(phase=Phase.FAILED, reason="r", message="m")
    (made,) = phase_changed(status(Phase.INSTALLING), failed)
    assert made == StatusEvent(type="Warning", reason="r", note="m")
    assert list(phase_changed(status(Phase.FAILED), failed)) == []
    assert len(list(phase_changed(status(Phase.FAILED, message="before"), failed))) == 1
    installing = PhaseResult(phase=Phase.INSTALLING, reason="r", message="m")
    assert list(phase_changed(status(Phase.SUCCEEDED), installing)) == []


def test_a_version_whose_deployment_is_still_that_of_the_older_one_does_not_succeed() -> None:
    """It would be deleted with the older one."""
    why = ConfigFault(
        entry=0, reason=ConfigFailureReason.ENV, field="env[0]", deployment="engine", cause="none"
    )
    held = DeploymentResult(name="engine", is_applied=False, faults=(why,), outcome=rollout.Done())
    assert phase_of_deployments([held]).phase == Phase.INSTALL_READY
    own = DeploymentResult(name="engine", is_applied=True, faults=(why,), outcome=rollout.Done())
    assert phase_of_deployments([own]).phase == Phase.SUCCEEDED


def test_a_local_cluster_has_a_catalog_and_a_subscription_with_one_entry() -> None:
    found = {one["kind"]: one for one in local_objects({})}
    assert sorted(found["ConfigMap"]["data"]) == [
        "catalog.json",
        "sample-operator.v0.1.0.json",
        "sample-operator.v0.2.0.json",
    ]
    assert len(found["Subscription"]["spec"]["config"]) == 1
