"""What a checker remembers of the objects that it has seen. Pure: the clocks are passed in.

`managedFields` date most of what an operator does, but not all. An answer that only removes a
message moves no time. The clocks of two API servers may differ. A proxy may strip the entries. So a
checker remembers when it saw a sign of life itself, since when it has seen all conditions marked,
and when a checker last wrote: there is one write per operator and interval, whatever the server's
times say. It measures on its own monotonic clock, which no server's time of day moves.

What is forgotten by a restart makes the checker wait longer, never shorter.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.operators.staleness.evidence import (
    Mark,
    Sighting,
    conditions_of,
    has_managed_fields,
    raw_conditions,
)
from quarterdeck.status.staleness_marks import original, recorded_status
from quarterdeck.status.writers import writes_of

Words = tuple[Any, ...]
"""What the operator says in the four conditions, our own marks taken off."""


class _Memory(msgspec.Struct, frozen=True, kw_only=True):
    uid: str
    first: float
    """When the object was first seen."""
    words: Words
    signs: frozenset[datetime]
    """When the operator wrote last, by the server's clock, under each name that it has."""
    alive: float | None
    """When a sign of life was last seen, on our clock."""
    all_marked: float | None
    """Since when all conditions are marked."""
    witnessed: bool
    """Whether they were seen to become so."""
    marks: frozenset[tuple[str, Mark]]
    """Those of the checkers."""
    written: float | None
    """When this checker last wrote, or saw another one's marks come."""


class Sightings:
    """What was seen, by the object's name."""

    def __init__(self) -> None:
        self._seen: dict[str, _Memory] = {}

    def look(self, obj: Object, now: datetime, clock: float | None = None) -> Sighting:
        """What is known of the object from this look and those before it.

        `now` is the server's time, to which the answer refers; without a `clock` it is measured
        by that.
        """
        clock = now.timestamp() if clock is None else clock
        meta = obj["metadata"]
        before = self._seen.get(meta["name"])
        if before is not None and before.uid != meta.get("uid", ""):
            before = None
        memory = self._seen[meta["name"]] = _remembered(obj, before, now, clock)
        return Sighting(
            _at(memory.alive, now, clock),
            _at(memory.all_marked, now, clock),
            memory.witnessed,
            _at(memory.first, now, clock),
        )

    def wrote(self, name: str, clock: float) -> None:
        """Note that this checker writes to the object now."""
        if (memory := self._seen.get(name)) is not None:
            self._seen[name] = msgspec.structs.replace(memory, written=clock)

    def did_not_write(self, name: str) -> None:
        """Take that back: the server has refused the write."""
        if (memory := self._seen.get(name)) is not None:
            self._seen[name] = msgspec.structs.replace(memory, written=None)

    def wait(self, name: str, clock: float, interval: timedelta) -> float:
        """The seconds until the next write to the object is due at the earliest; 0 if it is now."""
        memory = self._seen.get(name)
        if memory is None or memory.written is None:
            return 0.0
        return max(0.0, memory.written + interval.total_seconds() - clock)

    def forget(self, name: str) -> None:
        """The object is gone."""
        self._seen.pop(name, None)


def _remembered(obj: Object, before: _Memory | None, now: datetime, clock: float) -> _Memory:
    words = _words(obj)
    conditions = list(conditions_of(obj))
    marked = {one.type for one in conditions if one.mark}
    writes = list(writes_of(obj))
    asked = [write for write in writes if write.asks]
    signs = frozenset(write.time for write in writes if write.by_operator and write.time)
    by_hand = {kind for kind in marked if any(one.by_probe(kind) for one in asked)}
    marks = frozenset((one.type, one.mark) for one in conditions if one.type in marked - by_hand)
    written = before.written if before is not None else None
    if before is not None and marks - before.marks:
        written = clock
    if before is None:
        # Without managedFields nothing else dates the operator's last write.
        undated = not has_managed_fields(obj) and len(marked) < len(conditions)
        alive = _latest(signs, now, clock if undated else None, clock)
    else:
        # Put back by us, a message keeps one of our names as its owner.
        gone = {kind for kind, _ in before.marks} - marked
        answered = {kind for kind in gone if not any(one.owns_message(kind) for one in asked)}
        said = clock if answered or words != before.words else before.alive
        alive = _latest(signs - before.signs, now, said, clock)
    all_marked = bool(conditions) and len(marked) == len(conditions)
    stood = before is not None and before.all_marked is not None
    since = before.all_marked if before is not None and stood else clock
    return _Memory(
        uid=obj["metadata"].get("uid", ""),
        first=before.first if before is not None else clock,
        words=words,
        signs=signs,
        alive=alive,
        all_marked=since if all_marked else None,
        witnessed=before is not None and (before.witnessed or not stood),
        marks=marks,
        written=written,
    )


def _latest(
    signs: frozenset[datetime], now: datetime, known: float | None, clock: float
) -> float | None:
    """The latest sign of life on our clock, which goes on where the server's is set back.

    One from the server's future may have come just now: the clocks of two servers differ.
    """
    seen = [clock - max(0.0, (now - sign).total_seconds()) for sign in signs]
    return max([*seen, *([] if known is None else [known])], default=None)


def _at(moment: float | None, now: datetime, clock: float) -> datetime | None:
    """A moment on our clock as the server's time; in whole seconds, rather later than sooner."""
    if moment is None:
        return None
    exact = now - timedelta(seconds=clock - moment)
    return min(exact + timedelta(microseconds=999_999), now).replace(microsecond=0)


def _words(obj: Object) -> Words:
    conditions = raw_conditions(obj)
    words: list[Any] = []
    for one in conditions_of(obj):
        status, reason = one.status, conditions[one.position].get("reason")
        if one.mark is Mark.VERDICT:
            status = recorded_status(one.message) or one.status
        words.append((one.type, status, reason, original(one.message)))
    return tuple(words)
