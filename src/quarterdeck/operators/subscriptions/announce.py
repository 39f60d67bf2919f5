"""Which events follow from a change of an object's status. Pure, apart from the recording."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from quarterdeck.api.conditions import Condition
from quarterdeck.api.meta import TypedObject
from quarterdeck.controller.events import Recorder
from quarterdeck.status import find_condition


class StatusEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event to record."""

    type: Literal["Normal", "Warning"]
    reason: str
    note: str


def faults_changed(
    old: Iterable[Condition], new: Iterable[Condition], *, harmless: Iterable[str] = ()
) -> Iterator[StatusEvent]:
    """The events for conditions that are there only while something is wrong.

    A new fault is a warning, unless its type is `harmless`; one that is gone is good news.
    """
    before, after = list(old), list(new)
    for one in after:
        was = find_condition(before, one.type)
        if was is None or (was.reason, was.message) != (one.reason, one.message):
            level: Literal["Normal", "Warning"] = "Normal" if one.type in harmless else "Warning"
            yield StatusEvent(type=level, reason=one.reason, note=one.message)
    for one in before:
        if one.type not in harmless and find_condition(after, one.type) is None:
            note = f"{one.type} is over: {one.reason}"
            yield StatusEvent(type="Normal", reason=f"{one.type}Resolved", note=note)


def record(events: Recorder, about: TypedObject, found: Iterable[StatusEvent], action: str) -> None:
    """Record these events about the object."""
    for one in found:
        events.event(about, one.type, one.reason, one.note or one.reason, action=action)
