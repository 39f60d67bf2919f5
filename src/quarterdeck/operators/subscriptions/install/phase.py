"""The phase of a ClusterServiceVersion, and its status. Pure."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from quarterdeck.api.conditions import Condition
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion, ClusterServiceVersionStatus
from quarterdeck.operators.subscriptions.config.faults import ConfigFault, message_of
from quarterdeck.status import rollout, set_condition


class Phase(StrEnum):
    """How far the installation is."""

    PENDING = "Pending"
    INSTALL_READY = "InstallReady"
    INSTALLING = "Installing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    REPLACING = "Replacing"
    DELETING = "Deleting"


class PhaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """The phase, and why."""

    phase: Phase
    reason: str
    message: str


class DeploymentResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one Deployment."""

    name: str
    exists: bool
    faults: tuple[ConfigFault, ...] = ()
    """Why the configuration cannot be applied."""
    refused: tuple[str, ...] = ()
    """Why the API server refuses it, apart from the configuration."""
    outcome: rollout.Outcome | None = None
    """How far its roll-out is; None if it does not exist."""


def phase_of_deployments(results: Sequence[DeploymentResult]) -> PhaseResult:
    """The phase that follows from the Deployments."""
    if refused := [f"Deployment {one.name}: {why}" for one in results for why in one.refused]:
        return PhaseResult(
            phase=Phase.FAILED, reason="InstallComponentFailed", message="; ".join(refused)
        )
    missing = [one for one in results if not one.exists and one.faults]
    if missing:
        message = message_of(fault for one in missing for fault in one.faults)
        return PhaseResult(phase=Phase.INSTALL_READY, reason="ConfigFailure", message=message)
    for kind, phase, reason in (
        (rollout.Failed, Phase.FAILED, "InstallCheckFailed"),
        (rollout.Waiting, Phase.INSTALLING, "InstallWaiting"),
    ):
        found = [
            f"Deployment {one.name}: {one.outcome.message}"
            for one in results
            if isinstance(one.outcome, kind)
        ]
        if found:
            return PhaseResult(phase=phase, reason=reason, message="; ".join(found))
    return PhaseResult(
        phase=Phase.SUCCEEDED,
        reason="InstallSucceeded",
        message="all Deployments are available, and up to date",
    )


def desired_status(
    csv: ClusterServiceVersion, result: PhaseResult, now: datetime
) -> ClusterServiceVersionStatus:
    """The status of the ClusterServiceVersion."""
    succeeded = Condition(
        type="Succeeded",
        status="True" if result.phase == Phase.SUCCEEDED else "False",
        reason=result.reason,
        message=result.message,
        last_transition_time=now,
    )
    return ClusterServiceVersionStatus(
        phase=result.phase,
        reason=result.reason,
        message=result.message,
        observed_generation=csv.metadata.generation,
        conditions=set_condition(csv.status.conditions, succeeded, now),
    )
