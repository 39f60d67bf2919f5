"""The history of an operator's conditions, from all that is known of it. Pure.

The API server keeps the last change of each condition, and the staleness checkers' verdict records
the status before it. Everything else is what this console saw while it followed the operators.
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from quarterdeck.console.condition_changes import ConditionChange
from quarterdeck.status.health import SeenCondition

MAX_SHOWN = 20


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a condition."""

    at: datetime
    type: str
    before: str
    """Empty if it is not known."""
    after: str
    seen: bool
    """Whether this console saw it; if not, it is from the condition itself."""


def condition_history(
    conditions: Sequence[SeenCondition], changes: Sequence[ConditionChange]
) -> list[HistoryEntry]:
    """The changes of the conditions, the newest first."""
    found = {
        (one.type, one.at): HistoryEntry(
            at=one.at, type=one.type, before=one.before, after=one.after, seen=True
        )
        for one in changes
    }
    # Not by the time that is shown: a condition whose time is ahead of our clock is shown at ours.
    seen = {(one.type, one.since) for one in changes} | set(found)
    for one in conditions:
        if one.since is None or (one.type, one.since) in seen:
            continue
        before = one.last_known if one.last_known != one.status else ""
        found[one.type, one.since] = HistoryEntry(
            at=one.since, type=one.type, before=before, after=one.status, seen=False
        )
    ordered = sorted(found.values(), key=lambda one: (one.at, one.seen, one.type), reverse=True)
    return ordered[:MAX_SHOWN]
