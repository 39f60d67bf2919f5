"""How far a release is, from the ClusterVersion. Pure."""

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.status.release_progress import progress_in


class AppliedRelease(msgspec.Struct, frozen=True, kw_only=True):
    """The release that is applied, and how far it is."""

    before: str
    """The version that was complete before; empty at the installation."""
    wanted: str
    updating: bool
    done: int
    total: int
    waiting_on: tuple[str, ...]
    waiting_on_more: int
    """How many objects it waits for besides."""
    message: str
    faults: tuple[str, ...]
    """What stops it."""

    @property
    def percent(self) -> int:
        """The share that is done."""
        if self.total:
            return 100 * self.done // self.total
        return 0 if self.updating else 100


def conditions_in(obj: Object) -> dict[str, Object]:
    """The conditions of an object, by type."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return {str(one.get("type")): one for one in found if isinstance(one, dict)}


def progress_of(version: Object) -> AppliedRelease:
    """The progress that a ClusterVersion reports."""
    status = version.get("status") or {}
    conditions = conditions_in(version)
    progressing = conditions.get("Progressing") or {}
    message = str(progressing.get("message") or "")
    updating = progressing.get("status") == "True"
    counted = progress_in(message)
    completed = [
        str(one.get("version") or "")
        for one in status.get("history") or ()
        if one.get("state") == "Completed"
    ]
    wanted = str((status.get("desired") or {}).get("version") or "")
    return AppliedRelease(
        before=next((one for one in completed if one != wanted), "") if updating else "",
        wanted=wanted,
        updating=updating,
        done=counted.done if counted else 0,
        total=counted.total if counted else 0,
        waiting_on=counted.waiting if counted else (),
        waiting_on_more=counted.more if counted else 0,
        message=message,
        faults=tuple(
            str(one.get("message") or "")
            for type_, bad in (("Failing", "True"), ("ReleaseAccepted", "False"))
            if (one := conditions.get(type_) or {}).get("status") == bad
        ),
    )
