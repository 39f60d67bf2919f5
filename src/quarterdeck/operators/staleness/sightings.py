"""What a checker remembers of the objects that it has seen. Pure: the clocks are passed in.

`managedFields` date most writes of an operator, but not all. An answer that only removes a message
changes no time. The clocks of two API servers may differ. A proxy may strip the entries. So a
checker records when it saw a sign of life itself, since when all conditions are marked, and when a
checker last wrote. There is at most one write per operator and interval, whatever the server's
times are. The checker measures with its own monotonic clock, which no server can change.

A restart loses these records; the checker then waits longer, never shorter.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.operators.staleness.evidence import (
    Sighting,
    StalenessMark,
    conditions_of,
    has_managed_fields,
    raw_conditions,
    watched_of,
)
from quarterdeck.status.staleness_marks import original, recorded_status
from quarterdeck.status.writers import condition_writes

OperatorText = tuple[Any, ...]
"""What the operator wrote in the four conditions, without our marks."""


class _Memory(msgspec.Struct, frozen=True, kw_only=True):
    uid: str
    version: int
    """The newest resource version that was recorded."""
    first: float
    """When the object was first seen."""
    text: OperatorText
    signs: frozenset[datetime]
    """The times of the operator's last writes, by the server's clock, one for each manager."""
    alive: float | None
    """When the checker last saw a sign of life, on its own clock."""
    all_marked: float | None
    """Since when all conditions are marked."""
    witnessed: bool
    """Whether the checker also saw the conditions before they were marked."""
    marks: frozenset[tuple[str, StalenessMark]]
    """The marks by checkers, not by a probe."""
    written: float | None
    """When this checker last wrote, or saw a new mark of another checker."""


class Sightings:
    """The records of all objects, by name."""

    def __init__(self, *, keep_upgradeable_false: bool = False) -> None:
        """With the option, an Upgradeable=False has no mark although all that can have one do."""
        self._keep_upgradeable_false = keep_upgradeable_false
        self._seen: dict[str, _Memory] = {}

    def record(self, obj: Object, now: datetime, clock: float | None = None) -> Sighting:
        """Record the object as it is now, and return what is known from all looks.

        `now` is the server's time, and the result uses it. `clock` is the checker's own clock; the
        server's time replaces it if it is None.
        """
        clock = now.timestamp() if clock is None else clock
        meta = obj["metadata"]
        before = self._seen.get(meta["name"])
        if before is not None and before.uid != meta.get("uid", ""):
            before = None
        if before is not None and version_of(obj) < before.version:
            # A read from the server was ahead of the cache, and the cache now catches up. A mark
            # that this older version does not have yet is not gone.
            memory = before
        else:
            keep = self._keep_upgradeable_false
            memory = self._seen[meta["name"]] = _remembered(obj, before, now, clock, keep)
        return Sighting(
            _at(memory.alive, now, clock),
            _at(memory.all_marked, now, clock),
            memory.witnessed,
            _at(memory.first, now, clock),
        )

    def note_write(self, name: str, clock: float) -> None:
        """Record that this checker writes to the object now."""
        if (memory := self._seen.get(name)) is not None:
            self._seen[name] = msgspec.structs.replace(memory, written=clock)

    def write_refused(self, name: str, clock: float) -> None:
        """Remove the record of the write of that time, which the server has refused.

        A write of another checker that was recorded since stays.
        """
        memory = self._seen.get(name)
        if memory is not None and memory.written == clock:
            self._seen[name] = msgspec.structs.replace(memory, written=None)

    def wait(self, name: str, clock: float, interval: timedelta) -> float:
        """The seconds until the next write to the object is allowed; 0 if it is now."""
        memory = self._seen.get(name)
        if memory is None or memory.written is None:
            return 0.0
        return max(0.0, memory.written + interval.total_seconds() - clock)

    def marked_since(self, name: str, clock: float) -> float:
        """Since when all conditions are marked; `clock` if they are not."""
        memory = self._seen.get(name)
        return clock if memory is None or memory.all_marked is None else memory.all_marked

    def forget(self, name: str) -> None:
        """Drop the record of an object that is gone."""
        self._seen.pop(name, None)


def _remembered(
    obj: Object, before: _Memory | None, now: datetime, clock: float, keep_upgradeable_false: bool
) -> _Memory:
    text = _operator_text(obj)
    conditions = list(conditions_of(obj))
    marked = {one.type for one in conditions if one.mark}
    writes = list(condition_writes(obj))
    asked = [write for write in writes if write.by_checker]
    signs = frozenset(write.time for write in writes if write.by_operator and write.time)
    by_hand = {kind for kind in marked if any(one.by_probe(kind) for one in asked)}
    marks = frozenset((one.type, one.mark) for one in conditions if one.type in marked - by_hand)
    written = before.written if before is not None else None
    if before is not None and marks - before.marks:
        written = clock
    if before is None:
        # The object does not date the operator's last write: it may have answered just before.
        alive = _latest(signs, now, clock if is_undated(obj) else None, clock)
    else:
        # A checker or probe that restores a message owns it afterwards.
        gone = {kind for kind, _ in before.marks} - marked
        answered = {kind for kind in gone if not any(one.owns_message(kind) for one in asked)}
        said = clock if answered or text != before.text else before.alive
        alive = _latest(signs - before.signs, now, said, clock)
    watched = watched_of(conditions, keep_upgradeable_false=keep_upgradeable_false)
    all_marked = bool(watched) and all(one.mark for one in watched)
    stood = before is not None and before.all_marked is not None
    since = before.all_marked if before is not None and stood else clock
    return _Memory(
        uid=obj["metadata"].get("uid", ""),
        version=version_of(obj),
        first=before.first if before is not None else clock,
        text=text,
        signs=signs,
        alive=alive,
        all_marked=since if all_marked else None,
        witnessed=before is not None and (before.witnessed or not stood),
        marks=marks,
        written=written,
    )


def version_of(obj: Object) -> int:
    """The resource version as a number; those of one object are ordered by it."""
    version = str(obj["metadata"].get("resourceVersion", ""))
    return int(version) if version.isdecimal() else 0


def is_undated(obj: Object) -> bool:
    """Whether the operator may have written without a time of it in the object.

    That is so without managedFields, and for an operator that answers by removing a message.
    """
    unmarked = [one for one in conditions_of(obj) if not one.mark]
    raw = raw_conditions(obj)
    return bool(unmarked) and (
        not has_managed_fields(obj) or any("message" not in raw[one.position] for one in unmarked)
    )


def _latest(
    signs: frozenset[datetime], now: datetime, known: float | None, clock: float
) -> float | None:
    """The latest sign of life on our clock, which nobody can set back.

    A sign from the server's future counts as one of now: the clocks of two servers differ.
    """
    seen = [clock - max(0.0, (now - sign).total_seconds()) for sign in signs]
    return max([*seen, *([] if known is None else [known])], default=None)


def _at(moment: float | None, now: datetime, clock: float) -> datetime | None:
    """A moment on our clock as the server's time, rounded up to whole seconds."""
    if moment is None:
        return None
    exact = now - timedelta(seconds=clock - moment)
    return min(exact + timedelta(microseconds=999_999), now).replace(microsecond=0)


def _operator_text(obj: Object) -> OperatorText:
    conditions = raw_conditions(obj)
    text: list[Any] = []
    for one in conditions_of(obj):
        status, reason = one.status, conditions[one.position].get("reason")
        if one.mark is StalenessMark.VERDICT:
            status = recorded_status(one.message) or one.status
        text.append((one.type, status, reason, original(one.message)))
    return tuple(text)
