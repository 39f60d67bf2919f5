"""How the conditions of an object changed, between two states that were seen. Pure."""

from datetime import datetime

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.times import parse_time


class ConditionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a condition that this console saw."""

    type: str
    before: str
    after: str
    at: datetime
    since: datetime | None = None
    """The time that the condition says itself, which can be ahead of the clock here."""


def condition_changes(before: Object | None, after: Object, now: datetime) -> list[ConditionChange]:
    """The conditions whose status differs, each at the time that it says itself if it can be."""
    if before is None:
        return []
    old, new = _statuses(before), _statuses(after)
    found = []
    for type_, (status, time_) in new.items():
        was, since = old.get(type_, ("absent", None))
        if was != status:
            told = time_ if time_ and time_ <= now and (since is None or time_ > since) else None
            found.append(
                ConditionChange(type=type_, before=was, after=status, at=told or now, since=time_)
            )
    return found


def _statuses(obj: Object) -> dict[str, tuple[str, datetime | None]]:
    """The status of each condition, and since when."""
    found = (obj.get("status") or {}).get("conditions") or ()
    return {
        str(one.get("type")): (str(one.get("status")), parse_time(one.get("lastTransitionTime")))
        for one in found
    }
