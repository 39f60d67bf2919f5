"""The staleness clock of an operator: what the checkers do next, and when. Pure.

The explanation is that of `quarterdeck staleness explain`. What in it only says how late it is now
is left out, so that a page that only got older has not changed.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.times import parse_time

STEPS = {"challenge": "It is asked", "verdict": "It counts as stale"}
"""What the checkers do next, by the name of the action."""
_KNOWN_TIMES = datetime(1971, 1, 1, tzinfo=UTC)
"""Earlier times stand for none."""


class PublishedChecker(msgspec.Struct, frozen=True, kw_only=True):
    """A checker that has published its settings."""

    name: str
    counts: bool
    remark: str


class SignOfLife(msgspec.Struct, frozen=True, kw_only=True):
    """What the checkers know of an operator, and what they do next."""

    state: str
    alive: datetime | None
    """When it was last proven alive."""
    alive_by: str
    asked: datetime | None
    """When it was asked, or will be."""
    is_asked: bool
    stale: datetime | None
    """When it counted as stale, or will at the earliest."""
    is_stale: bool
    next: str = ""
    """What the checkers do next if it does not write before; empty if nothing."""
    next_from: datetime | None = None
    """When the wait for the next step began."""
    next_at: datetime | None = None
    """When the next step is due; None if it is due already."""
    interval: timedelta
    interval_from: str
    lease: str = ""
    note: str = ""
    checkers: tuple[PublishedChecker, ...] = ()


def sign_of_life(explanation: Object) -> SignOfLife:
    """The sign of life in an explanation of the staleness checker."""
    state = str(explanation.get("state") or "")
    alive = explanation.get("lastAlive") or {}
    interval = timedelta(seconds=float(explanation.get("intervalSeconds") or 0))
    then = explanation.get("next") or {}
    action, due = str(then.get("action") or ""), bool(then.get("due"))
    at = _time(then, "at") if not due else None
    asked, verdict = _time(explanation, "challengedAt"), _time(explanation, "verdictAt")
    last = _time(alive, "time")
    return SignOfLife(
        state=state,
        alive=last,
        alive_by=str(alive.get("by") or "") if last else "",
        asked=asked or (at if action == "challenge" else None),
        is_asked=state in ("challenged", "stale"),
        stale=verdict or _expected(action, at, interval),
        is_stale=state == "stale",
        next=STEPS.get(action, action),
        next_from=_time(explanation, "challengeStandsSince") if action == "verdict" else last,
        next_at=at,
        interval=interval,
        interval_from=_source(explanation),
        lease=str((explanation.get("lease") or {}).get("by") or ""),
        note=str(explanation.get("note") or ""),
        checkers=tuple(
            PublishedChecker(name=one["name"], counts=one["counts"], remark=one["remark"])
            for one in explanation.get("checkers") or ()
        ),
    )


def _expected(action: str, at: datetime | None, interval: timedelta) -> datetime | None:
    """When the operator counts as stale at the earliest, if it stays silent."""
    if at is None:
        return None
    return {"verdict": at, "challenge": at + interval}.get(action)


def _source(explanation: Object) -> str:
    """Where the interval is from, without how long ago it was published."""
    checkers: Sequence[Object] = explanation.get("checkers") or ()
    counting = [str(one["name"]) for one in checkers if one["counts"]]
    if counting:
        more = f" and {len(counting) - 1} more" if len(counting) > 1 else ""
        return f"published by checker {counting[0]}{more}"
    if any(one.get("published") for one in checkers):
        return "published by a checker that may be gone"
    return str(explanation.get("intervalFrom") or "")


def _time(given: Mapping[str, Any], field: str) -> datetime | None:
    found = parse_time(given.get(field))
    return found if found and found > _KNOWN_TIMES else None
