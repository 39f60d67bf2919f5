"""The conditions of the ClusterOperator `machine-api`. Pure."""

from quarterdeck.api.config_v1 import ClusterStatusCondition
from quarterdeck.metal3.platform import BareMetal, OtherPlatform, Platform, UnknownPlatform
from quarterdeck.metal3.state import State, StateReason
from quarterdeck.operators.machine_api.build import Build
from quarterdeck.status.report import Report, condition, standard_conditions

NOT_GATED = "Metal3NotGated"
NOT_GATED_MESSAGE = (
    "this machine API operator does not respect a claim of the baremetal operator, which the next "
    "minor version has: update to a newer patch version first"
)
AT_VERSION = (StateReason.COMPLETE, StateReason.WAITING, StateReason.STANDING_DOWN)
FAILED = (
    StateReason.INVALID,
    StateReason.NO_IMAGES,
    StateReason.NO_PASSWORD,
    StateReason.REFUSED,
    StateReason.TIMED_OUT,
    StateReason.CRASH_LOOPING,
    StateReason.CANNOT_READ,
)


def without_metal3() -> Report:
    """The report of a build that leaves metal3 alone."""
    return Report(conditions=standard_conditions(), at_release_version=True)


def with_metal3(build: Build, platform: Platform, state: State) -> Report:
    """The report of a build that manages metal3; `state` counts only on bare metal."""
    changed: list[ClusterStatusCondition] = []
    at_version = True
    match platform:
        case BareMetal():
            changed += conditions_of(state)
            at_version = state.reason in AT_VERSION
        case UnknownPlatform(message):
            changed.append(condition("Degraded", True, "UnknownPlatform", message))
    if not build.gated and not isinstance(platform, OtherPlatform):
        changed.append(condition("Upgradeable", False, NOT_GATED, NOT_GATED_MESSAGE))
    return Report(conditions=standard_conditions(*changed), at_release_version=at_version)


def conditions_of(state: State) -> list[ClusterStatusCondition]:
    """The conditions that metal3 changes."""
    if state.reason in FAILED:
        return [condition("Degraded", True, state.reason, state.message)]
    if state.reason is StateReason.SYNCING:
        return [condition("Progressing", True, state.reason, state.message)]
    return [condition("Available", True, state.reason, state.message)]
