"""Whether an operator is stale: the one rule, for everybody who asks. Pure.

An operator is stale when every condition that the staleness checker watches carries its verdict.
The checker may be told to leave an Upgradeable=False alone; such a condition keeps its text beside
the verdicts, and the operator is stale all the same.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.status.staleness_marks import is_checking, is_verdict

CHECKED = ("Available", "Progressing", "Degraded", "Upgradeable")
"""The types of the conditions that the staleness checker looks at."""


class _Said(Protocol):
    """What the rule reads of a condition."""

    @property
    def type(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def last_transition_time(self) -> datetime | None: ...


class SaidCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition of a plain object, as far as it can be read."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: datetime | None


def said_in(conditions: Iterable[Object]) -> Iterator[SaidCondition]:
    """The conditions of a plain object; what cannot be read is empty."""
    for one in conditions:
        type_, status, reason, message = (
            str(one.get(field) or "") for field in ("type", "status", "reason", "message")
        )
        since = parse_time(one.get("lastTransitionTime"))
        yield SaidCondition(
            type=type_, status=status, reason=reason, message=message, last_transition_time=since
        )


def parse_time(value: object) -> datetime | None:
    """A time as the API writes it; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def is_stale(conditions: Iterable[_Said], *, keep_upgradeable_false: bool | None = None) -> bool:
    """Whether the operator with these conditions was given up.

    The checker says whether it keeps an Upgradeable=False. Others do not know that. For them one
    was kept if it is older than the verdict beside it: an operator that sets it after the verdict
    is alive.
    """
    watched = [one for one in conditions if one.type in CHECKED]
    given_up = [one for one in watched if is_verdict(one.status, one.message)]
    others = [one for one in watched if not is_verdict(one.status, one.message)]
    if not given_up or keep_upgradeable_false is False:
        return bool(given_up) and not others
    return all(
        _forbids_upgrades(one) and (keep_upgradeable_false or _precedes(one, given_up))
        for one in others
    )


def depends_on_keeping(conditions: Iterable[_Said]) -> bool:
    """Whether the operator is stale only for a checker that keeps an Upgradeable=False."""
    said = tuple(conditions)
    kept = is_stale(said, keep_upgradeable_false=True)
    return kept and not is_stale(said, keep_upgradeable_false=False)


def _forbids_upgrades(one: _Said) -> bool:
    return (one.type, one.status) == ("Upgradeable", "False") and not is_checking(one.message)


def _precedes(one: _Said, given_up: Iterable[_Said]) -> bool:
    """Whether the condition had its status before the verdict; a time that is unknown is old."""
    since = one.last_transition_time
    verdicts = [time for other in given_up if (time := other.last_transition_time)]
    return since is None or not verdicts or since < max(verdicts)
