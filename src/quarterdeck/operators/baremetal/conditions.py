"""The conditions of the ClusterOperator `baremetal`. Pure.

| state | Available | Progressing | Degraded | Disabled |
|---|---|---|---|---|
| another platform | True | False | False | True |
| the platform is not known | True | False | True | False |
| no Provisioning | True | False | False | False |
| the configuration is invalid, or images or the password are missing | True | True | True | False |
| the roll-out is under way | True | True | False | False |
| the roll-out is complete | True | False | False | False |
| a read or write is refused, or the roll-out makes no progress | True | True | True | False |
| a container crashes again and again | False | False | True | False |
"""

from quarterdeck.api.config_v1 import ClusterStatusCondition, ObjectReference
from quarterdeck.api.meta import DEPLOYMENTS
from quarterdeck.api.metal3_v1alpha1 import BARE_METAL_HOSTS, PROVISIONINGS
from quarterdeck.metal3.names import DEPLOYMENT_KEY, NAMESPACE
from quarterdeck.metal3.platform import BareMetal, OtherPlatform, Platform, UnknownPlatform
from quarterdeck.metal3.progress import APPLYING
from quarterdeck.metal3.state import State, StateReason
from quarterdeck.status.report import Report, all_of, condition, standard_conditions

NOTHING_TO_DO = "Nothing to do on this Platform"
UNSUPPORTED = "UnsupportedPlatform"
INVALID = "Unable to apply Provisioning CR: invalid configuration"
UNABLE = {
    StateReason.INVALID: INVALID,
    StateReason.NO_IMAGES: "Unable to apply Provisioning CR: images are missing",
    StateReason.NO_PASSWORD: "Unable to apply Provisioning CR: the password is missing",
}

RELATED: tuple[ObjectReference, ...] = (
    all_of(PROVISIONINGS),
    all_of(BARE_METAL_HOSTS, NAMESPACE),
    ObjectReference(
        group=DEPLOYMENTS.group,
        resource=DEPLOYMENTS.plural,
        namespace=DEPLOYMENT_KEY.namespace,
        name=DEPLOYMENT_KEY.name,
    ),
)
AT_VERSION = (StateReason.COMPLETE, StateReason.WAITING)
"""The states in which everything that has to run is of this release."""


def report(platform: Platform, state: State) -> Report:
    """The report of the operator; `state` counts only on bare metal."""
    match platform:
        case OtherPlatform():
            conditions, at_version = disabled_conditions(), True
        case UnknownPlatform(message):
            conditions, at_version = unknown_conditions(message), False
        case BareMetal():
            conditions, at_version = conditions_of(state), state.reason in AT_VERSION
    return Report(conditions=conditions, related_objects=RELATED, at_release_version=at_version)


def disabled_conditions() -> tuple[ClusterStatusCondition, ...]:
    """The conditions on a platform without metal3."""
    return _conditions(
        condition("Disabled", True, UNSUPPORTED, NOTHING_TO_DO),
        condition("Available", True, UNSUPPORTED, NOTHING_TO_DO),
    )


def unknown_conditions(message: str) -> tuple[ClusterStatusCondition, ...]:
    """The conditions while the platform is not known."""
    return _conditions(condition("Degraded", True, "UnknownPlatform", message))


def conditions_of(state: State) -> tuple[ClusterStatusCondition, ...]:
    """The conditions on bare metal."""
    reason, message = state.reason, state.message
    match reason:
        case StateReason.WAITING:
            return _conditions(condition("Available", True, reason, message))
        case StateReason.INVALID | StateReason.NO_IMAGES | StateReason.NO_PASSWORD:
            return _conditions(
                condition("Degraded", True, reason, message),
                condition("Progressing", True, reason, UNABLE[reason]),
            )
        case StateReason.COMPLETE:
            return _conditions(
                condition("Available", True, reason, message),
                condition("Progressing", False, reason, message),
            )
        case StateReason.CRASH_LOOPING:
            return _conditions(
                condition("Available", False, reason, message),
                condition("Degraded", True, reason, message),
            )
        case StateReason.TIMED_OUT | StateReason.CANNOT_READ | StateReason.REFUSED:
            return _conditions(
                condition("Degraded", True, reason, message),
                condition("Progressing", True, reason, APPLYING),
            )
        case StateReason.SYNCING | StateReason.STANDING_DOWN:
            return _conditions(condition("Progressing", True, StateReason.SYNCING, message))


def _conditions(*changed: ClusterStatusCondition) -> tuple[ClusterStatusCondition, ...]:
    given = {one.type for one in changed}
    enabled = () if "Disabled" in given else (condition("Disabled", False),)
    return standard_conditions(*changed, *enabled)
