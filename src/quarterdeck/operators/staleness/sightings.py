"""What a checker remembers of objects that come without managedFields. Pure.

A proxy may strip them. Then nothing in the object dates the operator's last write or our own
challenge, and all that is left are the texts and the time at which we first saw them. What is
forgotten by a restart makes the checker wait longer, never shorter.
"""

from datetime import datetime
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

Words = tuple[Any, ...]
"""What the operator says, our own marks taken off."""


class _Memory(msgspec.Struct, frozen=True):
    uid: str
    words: Words
    unmarked: frozenset[str]
    sighting: Sighting


class Sightings:
    """First sights by object; those with managedFields need none."""

    def __init__(self) -> None:
        self._seen: dict[str, _Memory] = {}

    def look(self, obj: Object, now: datetime) -> Sighting | None:
        """Since when the object is as it is; None where it says so itself."""
        meta = obj["metadata"]
        if has_managed_fields(obj):
            self.forget(meta["name"])
            return None
        now = now.replace(microsecond=0)
        uid = meta.get("uid", "")
        words = _words(obj)
        unmarked = frozenset(one.type for one in conditions_of(obj) if not one.mark)
        before = self._seen.get(meta["name"])
        if before is not None and before.uid != uid:
            before = None
        self._seen[meta["name"]] = _Memory(
            uid, words, unmarked, _sighting(before, words, unmarked, now)
        )
        return self._seen[meta["name"]].sighting

    def forget(self, name: str) -> None:
        """The object is gone, or says who wrote it by now."""
        self._seen.pop(name, None)


def _sighting(
    before: _Memory | None, words: Words, unmarked: frozenset[str], now: datetime
) -> Sighting:
    if before is None:
        return Sighting(now, None) if unmarked else Sighting(None, now)
    # Other words, or a mark taken off: only the operator does that.
    lives = words != before.words or bool(unmarked - before.unmarked)
    alive = now if lives else before.sighting.alive
    marked = None if unmarked else before.sighting.marked or now
    return Sighting(alive, marked)


def _words(obj: Object) -> Words:
    marked = {one.position: one for one in conditions_of(obj) if one.mark}
    words: list[Any] = []
    for position, entry in enumerate(raw_conditions(obj)):
        if not isinstance(entry, dict):
            continue
        one = marked.get(position)
        status, message = entry.get("status"), entry.get("message")
        if one is not None:
            message = original(one.message)
            if one.mark is Mark.VERDICT:
                status = recorded_status(one.message)
        words.append((entry.get("type"), status, entry.get("reason"), message))
    return tuple(words)
