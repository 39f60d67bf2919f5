"""What a ClusterOperator tells about its operator's last sign of life. Pure.

`metadata.managedFields` says, stamped by the API server, when each manager last changed fields
that it owns. So both the operator's last write and our own challenge are dated in the object
itself, and a checker that starts again has lost nothing. What is to be done about it is decided
in `decide`.

Objects are plain dictionaries and may be odd: without status, with conditions that lack fields,
with times that are none. What cannot be read counts as not there.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.status.staleness_marks import is_checking, is_verdict

FIELD_MANAGER = "quarterdeck-staleness"
TYPES = ("Degraded", "Available", "Progressing", "Upgradeable")
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class Mark(StrEnum):
    """What the checker has made of a condition, by its text alone."""

    NONE = ""
    CHECKING = "checking"
    VERDICT = "verdict"


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition that is watched, as far as it can be read."""

    position: int
    """In `status.conditions`."""
    type: str
    status: str
    message: str
    changed: datetime | None
    """Its lastTransitionTime."""
    mark: Mark


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One manager's last change, from its managedFields entry."""

    manager: str
    operation: str
    time: datetime | None
    messages: frozenset[str]
    """The types of the conditions whose message it owns."""
    whole: bool
    """It owns the whole list, which the resource's definition has made atomic."""

    @property
    def ours(self) -> bool:
        """Whether the checker has written it."""
        return self.manager == FIELD_MANAGER


class Proof(msgspec.Struct, frozen=True):
    """Something that only a live operator does, and when it did."""

    time: datetime
    by: str
    """For people: who or what."""


class Sighting(msgspec.Struct, frozen=True):
    """When we first saw things, for an object that comes without managedFields."""

    alive: datetime | None
    """What the operator says has not changed since; None where it has said nothing yet."""
    marked: datetime | None
    """Since when all conditions are marked; None while they are not."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that the decision rests on."""

    conditions: tuple[Condition, ...]
    """X: those of the four types that are there and watched."""
    writes: tuple[Write, ...]
    """Who has written under `status.conditions`, and when."""
    alive: Proof
    """A: the last proof of life."""
    challenged: datetime | None
    """T: when we put the marks there; None if they are not ours."""

    @property
    def all_marked(self) -> bool:
        """Whether no condition is as its operator wants it."""
        return all(one.mark for one in self.conditions)

    @property
    def all_given_up(self) -> bool:
        """Whether there is nothing left to be said about this operator."""
        return all(one.mark is Mark.VERDICT for one in self.conditions)


def weigh(
    obj: Object,
    now: datetime,
    *,
    keep_upgradeable_false: bool = False,
    lease: Proof | None = None,
    seen: Sighting | None = None,
) -> Evidence:
    """What the object says; `seen` is for one that says nothing about who wrote it."""
    watched = tuple(
        one
        for one in conditions_of(obj)
        if not (keep_upgradeable_false and (one.type, one.status) == ("Upgradeable", "False"))
    )
    writes = tuple(writes_of(obj))
    if has_managed_fields(obj):
        seen = None
    proofs = [*_proofs(obj, watched, writes, now)]
    proofs += [lease] if lease else []
    if seen and seen.alive:
        proofs.append(Proof(seen.alive, "what this checker saw"))
    return Evidence(
        conditions=watched,
        writes=writes,
        alive=max(proofs, key=lambda proof: proof.time, default=Proof(LONG_AGO, "nothing")),
        challenged=seen.marked if seen else _challenged(watched, writes),
    )


def conditions_of(obj: Object) -> Iterator[Condition]:
    """The conditions of the four types, in the object's order."""
    for position, entry in enumerate(raw_conditions(obj)):
        if not isinstance(entry, dict) or entry.get("type") not in TYPES:
            continue
        status, message = _text(entry.get("status")), _text(entry.get("message"))
        yield Condition(
            position=position,
            type=entry["type"],
            status=status,
            message=message,
            changed=parse_time(entry.get("lastTransitionTime")),
            mark=_mark(status, message),
        )


def writes_of(obj: Object) -> Iterator[Write]:
    """The managers that own anything under `status.conditions`."""
    for entry in _items(_part(obj, "metadata").get("managedFields")):
        owned = _part(_part(entry, "fieldsV1"), "f:status").get("f:conditions")
        if not isinstance(owned, dict):
            continue
        yield Write(
            manager=_text(entry.get("manager")),
            operation=_text(entry.get("operation")),
            time=parse_time(entry.get("time")),
            messages=frozenset(_owned_messages(owned)),
            whole=not owned,
        )


def has_managed_fields(obj: Object) -> bool:
    """Whether the object says who wrote it; a proxy may have taken that away."""
    return bool(_part(obj, "metadata").get("managedFields"))


def raw_conditions(obj: Object) -> list[Any]:
    """The list as it is; empty when there is none."""
    found = _part(obj, "status").get("conditions")
    return found if isinstance(found, list) else []


def parse_time(value: object) -> datetime | None:
    """A time as the API writes it; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _proofs(
    obj: Object, watched: Iterable[Condition], writes: Iterable[Write], now: datetime
) -> Iterator[Proof]:
    for write in writes:
        if not write.ours and write.time is not None:
            yield Proof(write.time, f"a write by {write.manager or 'an unnamed manager'}")
    for one in watched:
        # Of a marked condition the time may be that of our own verdict.
        if not one.mark and one.changed is not None and one.changed <= now:
            yield Proof(one.changed, f"the last transition of {one.type}")
    created = parse_time(_part(obj, "metadata").get("creationTimestamp"))
    if created is not None:
        yield Proof(created, "its creation")


def _challenged(watched: Iterable[Condition], writes: Iterable[Write]) -> datetime | None:
    marked = {one.type for one in watched if one.mark}
    times = [
        write.time
        for write in writes
        if write.ours and write.time and (write.messages & marked or (write.whole and marked))
    ]
    return max(times, default=None)


def _owned_messages(owned: Mapping[str, Any]) -> Iterator[str]:
    """The condition types in a tree like `{'k:{"type":"Available"}': {"f:message": {}}}`."""
    for key, fields in owned.items():
        if (
            key.startswith("k:")
            and isinstance(fields, dict)
            and (not fields or "f:message" in fields)
        ):
            try:
                name = json.loads(key[2:])
            except ValueError:
                continue
            if isinstance(name, dict) and isinstance(name.get("type"), str):
                yield name["type"]


def _mark(status: str, message: str) -> Mark:
    if is_checking(message):
        return Mark.CHECKING
    return Mark.VERDICT if is_verdict(status, message) else Mark.NONE


def _part(obj: Object, name: str) -> Object:
    found = obj.get(name)
    return found if isinstance(found, dict) else {}


def _items(value: object) -> list[Object]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
