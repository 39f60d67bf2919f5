"""The status of ClusterVersion, from the decision and the engine's progress. Pure.

| condition | True | False |
|---|---|---|
| Available | a release was completed once | none was yet |
| Failing | a fault stops the release from being applied or kept | there is no fault |
| Progressing | a release is being applied | the release is complete |
| ReleaseAccepted | `spec.desiredUpdate` is accepted | it is refused; Unknown: it is retrieved |
| RetrievedUpdates | the possible updates are known | the update service does not say them |
| Upgradeable | nothing blocks a minor update | something does |
| ImplicitlyEnabledCapabilities | a capability is enabled that the spec does not have | none is |

The same facts give the same status again, so a settled cluster is not written to. While a release
is applied the messages change often; `pause_before_write` decides which changes wait.
"""

from datetime import datetime

import msgspec

from quarterdeck.api.config_v1 import (
    CapabilitiesStatus,
    ClusterStatusCondition,
    ClusterVersionStatus,
    ConditionalUpdate,
    Release,
)
from quarterdeck.kube.errors import ApiError, Invalid
from quarterdeck.operators.cluster_version.history import History, latest_completed
from quarterdeck.operators.cluster_version.sync.progress import ManifestFault, PayloadProgress
from quarterdeck.operators.cluster_version.version.blockers import Blocker, summary
from quarterdeck.operators.cluster_version.version.texts import (
    fault_message,
    fault_reason,
    fault_summary,
    working_towards,
)
from quarterdeck.operators.cluster_version.version.updates import FIELD, UpdateRefused
from quarterdeck.payload.graph import Mode
from quarterdeck.status import set_condition

MESSAGE_LIMIT = 8192
"""The most characters of a message, so that etcd does not refuse the object for its size."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the status."""

    generation: int
    release: Release
    """The release that is being applied or is complete."""
    mode: Mode
    history: History
    refused: UpdateRefused | None = None
    """Why `spec.desiredUpdate` is refused."""
    way_back: str = ""
    """The version to which an update that is not complete can be turned back."""
    unusable: UpdateRefused | None = None
    """Why the release itself cannot be applied: its payload is missing or invalid."""
    version_hash: str = ""
    progress: PayloadProgress | None = None
    faults: tuple[ManifestFault, ...] = ()
    """The faults that have lasted long enough to be reported."""
    blockers: tuple[Blocker, ...] = ()
    capabilities: CapabilitiesStatus | None = None
    not_asked_for: tuple[str, ...] = ()
    """Capabilities that are enabled although the spec does not ask for them."""
    available_updates: tuple[Release, ...] | None = None
    conditional_updates: tuple[ConditionalUpdate, ...] = ()
    retrieved: tuple[str, str, str] = ("True", "ReleasesDirectory", "")
    """Status, reason and message of RetrievedUpdates."""

    @property
    def shows_updates(self) -> bool:
        """Whether there are updates to show."""
        return bool(self.available_updates or self.conditional_updates)


def desired_status(
    facts: Facts, was: ClusterVersionStatus | None, now: datetime
) -> ClusterVersionStatus:
    """The whole status; conditions of other writers stay."""
    conditions = was.conditions if was else ()
    for type_, status, reason, message in (
        _available(facts),
        _failing(facts),
        _progressing(facts),
        _release_accepted(facts),
        ("RetrievedUpdates", *facts.retrieved),
        _upgradeable(facts),
        _implicit_capabilities(facts),
    ):
        if len(message) > MESSAGE_LIMIT:
            message = message[: MESSAGE_LIMIT - 1] + "…"
        conditions = set_condition(
            conditions,
            ClusterStatusCondition(
                type=type_,
                status=status,
                reason=reason,
                message=message,
                last_transition_time=now,
            ),
            now,
        )
    return ClusterVersionStatus(
        desired=facts.release,
        history=facts.history,
        observed_generation=facts.generation,
        version_hash=facts.version_hash,
        capabilities=facts.capabilities,
        conditions=conditions,
        available_updates=facts.available_updates,
        conditional_updates=facts.conditional_updates,
    )


UpdatesShown = tuple[tuple[Release, ...] | None, tuple[object, ...]]


def updates_shown(facts: Facts) -> UpdatesShown:
    """The updates that a status of these facts shows, without the times of their conditions."""
    risky = tuple((update.release, update.risks) for update in facts.conditional_updates)
    return facts.available_updates, risky


def without_updates(facts: Facts, why: str) -> Facts:
    """The facts without the updates, with which the API server refuses the status."""
    message = (
        f"the updates cannot be shown, because the API server refuses them: {why[:1000]};"
        " correct the update service's data, or spec.upstream"
    )
    return msgspec.structs.replace(
        facts,
        available_updates=(),
        conditional_updates=(),
        retrieved=("False", "ResponseInvalid", message),
    )


def refuses_content(error: ApiError) -> bool:
    """Whether the API server refuses a status for what is in it, or for its size."""
    return isinstance(error, Invalid) or "too large" in error.message or "larger" in error.message


def pause_before_write(
    was: ClusterVersionStatus | None, new: ClusterVersionStatus, since_write: float, interval: float
) -> float:
    """The seconds to wait before the write.

    A change of only reasons and messages is written once in an interval; any other at once.
    """
    if was is None or _without_texts(was) != _without_texts(new):
        return 0.0
    return max(0.0, interval - since_write)


def _without_texts(status: ClusterVersionStatus) -> ClusterVersionStatus:
    conditions = tuple(
        msgspec.structs.replace(condition, reason="", message="") for condition in status.conditions
    )
    return msgspec.structs.replace(status, conditions=conditions)


ConditionText = tuple[str, str, str, str]
"""A condition's type, status, reason and message."""


def _available(facts: Facts) -> ConditionText:
    done = latest_completed(facts.history)
    if done is None:
        return "Available", "False", "NoReleaseApplied", "No release has been fully applied yet"
    return "Available", "True", "ReleaseApplied", f"Done applying {done.version or done.image}"


def _failing(facts: Facts) -> ConditionText:
    if facts.unusable is not None and not facts.unusable.pending:
        return "Failing", "True", facts.unusable.reason, str(facts.unusable)
    if facts.faults:
        return "Failing", "True", fault_reason(facts.faults), fault_message(facts.faults)
    return "Failing", "False", "AsExpected", ""


def _progressing(facts: Facts) -> ConditionText:
    version, arrived = facts.release.version, facts.mode is Mode.RECONCILING
    status = "False" if arrived else "True"
    if facts.unusable is not None:
        # The engine does nothing, so Progressing is False even if the history says Partial.
        what = f"Unable to {'keep' if arrived else 'apply'} {version}"
        if facts.unusable.pending:
            what = f"Waiting to {'keep' if arrived else 'apply'} {version}"
        return "Progressing", "False", facts.unusable.reason, f"{what}: {facts.unusable.message}"
    if facts.faults:
        reason, told = fault_reason(facts.faults), fault_summary(facts.faults)
        verb = "Error while reconciling" if arrived else "Unable to apply"
        return "Progressing", status, reason, f"{verb} {version}: {told}{_way_out(facts)}"
    if arrived:
        return "Progressing", status, "AsExpected", f"Cluster version is {version}"
    reason = "Initializing" if facts.mode is Mode.INITIALIZING else "Updating"
    return "Progressing", status, reason, working_towards(version, facts.progress)


def _way_out(facts: Facts) -> str:
    """The release to which an update with faults can be turned back, as a remedy."""
    back = facts.way_back
    return f"; it can be turned back: set {FIELD}.version to {back}" if back else ""


def _release_accepted(facts: Facts) -> ConditionText:
    if (refused := facts.refused or facts.unusable) is not None:
        status = "Unknown" if refused.pending else "False"
        return "ReleaseAccepted", status, refused.reason, str(refused)
    loaded = f'Payload loaded version="{facts.release.version}" image="{facts.release.image}"'
    return "ReleaseAccepted", "True", "PayloadLoaded", loaded


def _upgradeable(facts: Facts) -> ConditionText:
    if not facts.blockers:
        return "Upgradeable", "True", "AsExpected", ""
    said = summary(facts.blockers)
    text = f"Minor updates are blocked, patch updates are not:\n{said.message}"
    if len(facts.blockers) == 1:
        text = f"Minor updates are blocked, patch updates are not: {said.message}"
    return "Upgradeable", "False", said.reason, text


def _implicit_capabilities(facts: Facts) -> ConditionText:
    type_ = "ImplicitlyEnabledCapabilities"
    if not facts.not_asked_for:
        return type_, "False", "AsExpected", "Capabilities are as spec.capabilities says"
    kept = ", ".join(facts.not_asked_for)
    text = f"The cluster has had what belongs to these capabilities, so they stay enabled: {kept}"
    return type_, "True", "CapabilitiesImplicitlyEnabled", text
