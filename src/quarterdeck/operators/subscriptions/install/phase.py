"""The phase of a ClusterServiceVersion, and its status. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Literal

import msgspec

from quarterdeck.api.conditions import Condition
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion, ClusterServiceVersionStatus
from quarterdeck.controller.faults import readable
from quarterdeck.operators.subscriptions.announce import StatusEvent
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
    is_observed: bool = True
    """Whether it is about what was applied last, and not about the time before."""


class DeploymentResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one Deployment."""

    name: str
    is_applied: bool
    """Whether it exists, as this version has applied it; an older version's counts as missing."""
    faults: tuple[ConfigFault, ...] = ()
    """Why the configuration cannot be applied."""
    refused: tuple[str, ...] = ()
    """Why the API server refuses it, apart from the configuration."""
    outcome: rollout.Outcome | None = None
    """How far its roll-out is; None if it does not exist."""
    is_observed: bool = True
    """Whether its controller has seen what was applied last."""
    version: str = ""
    """Its resource version."""

    @property
    def is_as_desired(self) -> bool:
        """Whether it is as the version and the configuration want it."""
        return self.is_applied and not self.faults and not self.refused


def phase_of_deployments(results: Sequence[DeploymentResult]) -> PhaseResult:
    """The phase that follows from the Deployments."""
    if refused := [f"Deployment {one.name}: {why}" for one in results for why in one.refused]:
        return PhaseResult(
            phase=Phase.FAILED, reason="InstallComponentFailed", message="; ".join(refused)
        )
    missing = [one for one in results if not one.is_applied and one.faults]
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
            return PhaseResult(
                phase=phase,
                reason=reason,
                message="; ".join(found),
                is_observed=all(one.is_observed for one in results),
            )
    return PhaseResult(
        phase=Phase.SUCCEEDED,
        reason="InstallSucceeded",
        message="all Deployments are available, and up to date",
    )


OBSERVED_WITHIN = 10.0
"""Seconds in which the controller of Deployments sees a change, unless it does not run."""
ROLL_OUT_GRACE_PERIOD = 1.0
"""Seconds that a roll-out may last before it is worth a phase."""


def seconds_unchanged(csv: ClusterServiceVersion, found: PhaseResult) -> float:
    """For how many seconds of a roll-out a version that works stays Succeeded.

    A short roll-out would be two writes and an event about something that is over before anybody
    reads it. Until the controller of Deployments has seen a change, nothing is known about it.
    """
    status = csv.status
    if (
        found.phase != Phase.INSTALLING
        or status.phase != Phase.SUCCEEDED
        or status.observed_generation != csv.metadata.generation
    ):
        return 0.0
    return ROLL_OUT_GRACE_PERIOD if found.is_observed else OBSERVED_WITHIN


ANNOUNCED: dict[Phase, Literal["Normal", "Warning"]] = {
    Phase.PENDING: "Warning",
    Phase.INSTALL_READY: "Warning",
    Phase.FAILED: "Warning",
    Phase.SUCCEEDED: "Normal",
    Phase.REPLACING: "Normal",
}
"""The phases that are worth an event; others are on the way to one of these."""


def phase_changed(was: ClusterServiceVersionStatus, now: PhaseResult) -> Iterator[StatusEvent]:
    """The event for a new phase, or for a new reason why it is not a good one."""
    level = ANNOUNCED.get(now.phase)
    is_new = was.phase != now.phase
    if level == "Warning":
        is_new |= (was.reason, was.message) != (now.reason, readable(now.message))
    if level is not None and is_new:
        yield StatusEvent(type=level, reason=now.reason, note=now.message)


def desired_status(
    csv: ClusterServiceVersion, result: PhaseResult, now: datetime
) -> ClusterServiceVersionStatus:
    """The status of the ClusterServiceVersion."""
    message = readable(result.message)
    succeeded = Condition(
        type="Succeeded",
        status="True" if result.phase == Phase.SUCCEEDED else "False",
        reason=result.reason,
        message=message,
        last_transition_time=now,
    )
    return ClusterServiceVersionStatus(
        phase=result.phase,
        reason=result.reason,
        message=message,
        installed_as=csv.status.installed_as,
        observed_generation=csv.metadata.generation,
        conditions=set_condition(csv.status.conditions, succeeded, now),
    )
