"""Sets conditions in a list. Pure: the time is passed in, and a new tuple comes back."""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol, TypeVar

import msgspec


class _DatedCondition(Protocol):
    """The fields that all kinds of conditions share; in the oldest ones all may be missing."""

    @property
    def type(self) -> str | None: ...

    @property
    def status(self) -> str | None: ...

    @property
    def last_transition_time(self) -> datetime | None: ...


C = TypeVar("C", bound=_DatedCondition)


def find_condition(conditions: Iterable[C], type_: str | None) -> C | None:
    """The condition of that type; None if there is none."""
    return next((one for one in conditions if one.type == type_), None)


def set_condition(old: Iterable[C], new: C, now: datetime) -> tuple[C, ...]:
    """The conditions with this one set; its transition time changes only with its status.

    The others keep their content and position, so setting an equal condition changes nothing.
    """
    old = tuple(old)
    was = find_condition(old, new.type)
    # The API's times have whole seconds; a finer one would never compare equal.
    since = was.last_transition_time if was and was.status == new.status else None
    since = (since or now).replace(microsecond=0)
    dated: C = msgspec.structs.replace(new, last_transition_time=since)  # type: ignore[type-var]
    if was is None:
        return (*old, dated)
    return tuple(dated if one is was else one for one in old)


def merge_conditions(old: Iterable[C], new: Iterable[C], now: datetime) -> tuple[C, ...]:
    """The conditions with all of these set; conditions of other types stay."""
    conditions = tuple(old)
    for one in new:
        conditions = set_condition(conditions, one, now)
    return conditions


def remove_conditions(old: Iterable[C], types: Iterable[str]) -> tuple[C, ...]:
    """The conditions without those of these types."""
    gone = set(types)
    return tuple(one for one in old if one.type not in gone)
