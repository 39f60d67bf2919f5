"""The states of metal3, as the operator that manages it reports them."""

from datetime import datetime
from enum import StrEnum

import msgspec


class StateReason(StrEnum):
    """The states, by the reasons in the conditions."""

    WAITING = "WaitingForProvisioningCR"
    INVALID = "InvalidConfiguration"
    NO_IMAGES = "ImagesMissing"
    NO_PASSWORD = "PasswordMissing"  # noqa: S105 - a state, not a password
    """The Secret is there and has no password in it."""
    SYNCING = "SyncingResources"
    REFUSED = "SyncingFailed"
    """The server refuses a write."""
    COMPLETE = "DeployComplete"
    TIMED_OUT = "DeployTimedOut"
    CRASH_LOOPING = "DeploymentCrashLooping"
    STANDING_DOWN = "StandingDown"
    """The other operator manages metal3."""
    CANNOT_READ = "CannotRead"
    """It is not known who manages metal3, or what metal3 needs."""


class State(msgspec.Struct, frozen=True):
    """A state of metal3, with a message."""

    reason: StateReason
    message: str
    valid_until: datetime | None = None
    """When another state is due although nothing changes; None if there is no such time."""


FORBIDDEN = ' is forbidden: User "'
"""How the API server says that a right is missing."""
REMEDY = "grant its account this right again, as the roles in its release do"


def with_remedy(message: str) -> str:
    """The message of an error, with what to do if a right is missing. Pure."""
    return f"{message}; {REMEDY}" if FORBIDDEN in message else message
