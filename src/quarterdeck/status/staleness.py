"""Whether an operator is stale: the one rule for all callers. Pure.

An operator is stale when every condition that the staleness checker watches carries its verdict. If
the checker is set to keep an Upgradeable=False, that condition keeps its own text, and the operator
is stale all the same.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Protocol

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.times import parse_time
from quarterdeck.status.staleness_marks import is_checking, is_verdict

CHECKED = ("Available", "Progressing", "Degraded", "Upgradeable")
"""The types of the conditions that the staleness checker watches."""


class _ConditionLike(Protocol):
    """The fields of a condition that the rule reads."""

    @property
    def type(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def last_transition_time(self) -> datetime | None: ...


class PlainCondition(msgspec.Struct, frozen=True, kw_only=True):
    """A condition of an untyped object."""

    type: str
    status: str
    reason: str
    message: str
    last_transition_time: datetime | None


def plain_conditions(conditions: Iterable[Object]) -> Iterator[PlainCondition]:
    """The conditions of an untyped object; a field that cannot be read is empty."""
    for one in conditions:
        type_, status, reason, message = (
            str(one.get(field) or "") for field in ("type", "status", "reason", "message")
        )
        since = parse_time(one.get("lastTransitionTime"))
        yield PlainCondition(
            type=type_, status=status, reason=reason, message=message, last_transition_time=since
        )


def is_stale(
    conditions: Iterable[_ConditionLike], *, keep_upgradeable_false: bool | None = None
) -> bool:
    """Whether the operator with these conditions is stale.

    `keep_upgradeable_false` is whether the checker keeps an Upgradeable=False. If it is None, the
    condition counts as kept if it is older than the verdicts: an operator that sets it after a
    verdict is alive.
    """
    watched = [one for one in conditions if one.type in CHECKED]
    with_verdict = [one for one in watched if is_verdict(one.status, one.message)]
    others = [one for one in watched if not is_verdict(one.status, one.message)]
    if not with_verdict or keep_upgradeable_false is False:
        return bool(with_verdict) and not others
    if keep_upgradeable_false:
        return all(map(_forbids_upgrades, others))
    # A challenge on it is by a checker that does not keep it.
    return all(
        _forbids_upgrades(one) and not is_checking(one.message) and _precedes(one, with_verdict)
        for one in others
    )


def lacks_report(conditions: Iterable[_ConditionLike], *needed: str) -> bool:
    """Whether the operator is stale, or a condition of a needed type carries the verdict.

    An operator that writes one condition after a verdict is not stale, but its other conditions
    are still unknown.
    """
    found = tuple(conditions)
    unknown = any(one.type in needed and is_verdict(one.status, one.message) for one in found)
    return unknown or is_stale(found)


def depends_on_keeping(conditions: Iterable[_ConditionLike]) -> bool:
    """Whether the operator is stale only for a checker that keeps an Upgradeable=False."""
    found = tuple(conditions)
    kept = is_stale(found, keep_upgradeable_false=True)
    return kept and not is_stale(found, keep_upgradeable_false=False)


def _forbids_upgrades(one: _ConditionLike) -> bool:
    return (one.type, one.status) == ("Upgradeable", "False")


def _precedes(one: _ConditionLike, with_verdict: Iterable[_ConditionLike]) -> bool:
    """Whether the condition has its status since before the verdict, or since an unknown time."""
    since = one.last_transition_time
    verdicts = [time for other in with_verdict if (time := other.last_transition_time)]
    return since is None or not verdicts or since < max(verdicts)
