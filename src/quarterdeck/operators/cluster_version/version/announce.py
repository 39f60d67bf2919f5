"""The events about a change of ClusterVersion's status.

They follow from the old and the new status, so that a restart repeats none.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from quarterdeck.api.config_v1 import ClusterVersionStatus, UpdateState
from quarterdeck.status import find_condition


class Announcement(msgspec.Struct, frozen=True, kw_only=True):
    """One event."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    action: str


def announcements(
    was: ClusterVersionStatus | None, new: ClusterVersionStatus
) -> tuple[Announcement, ...]:
    """The events for a change of the status."""
    return (*_of_history(was, new), *_of_acceptance(was, new), *_of_failing(was, new))


def _of_history(
    was: ClusterVersionStatus | None, new: ClusterVersionStatus
) -> Iterator[Announcement]:
    before = was.history[0] if was and was.history else None
    now = new.history[0] if new.history else None
    if now is None or now == before:
        return
    version = now.version or now.image
    if now.state == UpdateState.COMPLETED:
        yield _normal("ReleaseApplied", f"Done applying {version}", "Apply")
        return
    coming_from = f" from {before.version or before.image}" if before else ""
    yield _normal("ReleaseBegun", f"Working towards {version}{coming_from}", "Apply")
    if now.accepted_risks:
        text = f"the update to {version} begins although: {now.accepted_risks}"
        yield Announcement(type="Warning", reason="UpdateWithRisks", message=text, action="Accept")


def _of_acceptance(
    was: ClusterVersionStatus | None, new: ClusterVersionStatus
) -> Iterator[Announcement]:
    before = find_condition(was.conditions if was else (), "ReleaseAccepted")
    now = find_condition(new.conditions, "ReleaseAccepted")
    if now is None or now.status != "False":
        return
    if before is None or (before.status, before.message) != (now.status, now.message):
        yield Announcement(type="Warning", reason=now.reason, message=now.message, action="Accept")


def _of_failing(
    was: ClusterVersionStatus | None, new: ClusterVersionStatus
) -> Iterator[Announcement]:
    before = find_condition(was.conditions if was else (), "Failing")
    now = find_condition(new.conditions, "Failing")
    accepted = find_condition(new.conditions, "ReleaseAccepted")
    if now is None or (before is not None and before.status == now.status):
        return
    if now.status == "True" and (accepted is None or accepted.message != now.message):
        yield Announcement(type="Warning", reason=now.reason, message=now.message, action="Apply")
    elif now.status == "False" and before is not None:
        yield _normal("AsExpected", "Nothing fails any more", "Apply")


def _normal(reason: str, message: str, action: str) -> Announcement:
    return Announcement(type="Normal", reason=reason, message=message, action=action)
