"""What a ClusterOperator tells about its operator's last sign of life. Pure.

`metadata.managedFields` says, stamped by the API server, when each manager last changed fields
that it owns. So both the operator's last write and our own challenge are dated in the object
itself, and a checker that starts again has lost nothing. What is to be done about it is decided
in `decide`.

Objects are plain dictionaries and may be odd: without status, with conditions that lack fields,
with times that are none. What cannot be read counts as not there.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.status.staleness import CHECKED, is_stale, parse_time
from quarterdeck.status.staleness_marks import is_checking, is_verdict
from quarterdeck.status.writers import Write, cannot_answer, writes_of

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
    last_transition_time: datetime | None
    mark: Mark


class Proof(msgspec.Struct, frozen=True):
    """Something that only a live operator does, and when it did."""

    time: datetime
    by: str
    """For people: who or what."""


NOTHING = Proof(LONG_AGO, "nothing")


class Sighting(msgspec.Struct, frozen=True):
    """When this checker saw things that the object itself does not date."""

    alive: datetime | None
    """The last sign of life that was seen; None where there was none yet."""
    marked: datetime | None
    """Since when all conditions are marked, as far as it was seen; None while they are not."""
    witnessed: bool = False
    """Whether this checker saw them become marked, and does not just find them so."""
    first: datetime | None = None
    """When this checker saw the object for the first time."""


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
    stale: bool
    """Whether there is nothing left to be said about this operator."""
    cannot_answer: bool
    """Whether the operator has no way to put its messages back, though it may run."""

    @property
    def all_marked(self) -> bool:
        """Whether no condition is as its operator wants it."""
        return all(one.mark for one in self.conditions)


def weigh(
    obj: Object,
    now: datetime,
    *,
    keep_upgradeable_false: bool = False,
    lease: Proof | None = None,
    seen: Sighting | None = None,
) -> Evidence:
    """What the object says, and what this checker has seen of it before."""
    found = tuple(conditions_of(obj))
    watched = tuple(
        one
        for one in found
        if not (keep_upgradeable_false and (one.type, one.status) == ("Upgradeable", "False"))
    )
    writes = tuple(writes_of(obj))
    proofs = [*_proofs(obj, watched, writes, now)]
    proofs += [lease] if lease else []
    if seen and seen.alive:
        proofs.append(Proof(seen.alive, "what this checker saw"))
    # A time in the future proves nothing now, and would hide a dead operator until then.
    proofs = [proof for proof in proofs if proof.time <= now]
    dated = has_managed_fields(obj)
    marked = seen.marked if seen else None
    # Where all times lie in the future, the first look is all there is.
    nothing = Proof(seen.first, "the first look") if seen and seen.first else NOTHING
    return Evidence(
        conditions=watched,
        writes=writes,
        alive=max(proofs, key=lambda proof: proof.time, default=nothing),
        challenged=_challenged(watched, writes, now, seen) if dated else marked,
        cannot_answer=cannot_answer(obj),
        stale=is_stale(found, keep_upgradeable_false=keep_upgradeable_false),
    )


def conditions_of(obj: Object) -> Iterator[Condition]:
    """The conditions of the four types, in the object's order."""
    for position, entry in enumerate(raw_conditions(obj)):
        if not isinstance(entry, dict) or entry.get("type") not in CHECKED:
            continue
        status, message = _text(entry.get("status")), _text(entry.get("message"))
        yield Condition(
            position=position,
            type=entry["type"],
            status=status,
            message=message,
            last_transition_time=parse_time(entry.get("lastTransitionTime")),
            mark=_mark(status, message),
        )


def has_managed_fields(obj: Object) -> bool:
    """Whether the object says who wrote it; a proxy may have taken that away."""
    return bool(_part(obj, "metadata").get("managedFields"))


def raw_conditions(obj: Object) -> list[Any]:
    """The list as it is; empty when there is none."""
    found = _part(obj, "status").get("conditions")
    return found if isinstance(found, list) else []


def _proofs(
    obj: Object, watched: Iterable[Condition], writes: Iterable[Write], now: datetime
) -> Iterator[Proof]:
    for write in writes:
        if write.time is not None and write.proves_life(now):
            yield Proof(write.time, f"a write by {write.manager or 'an unnamed manager'}")
    for one in watched:
        # Of a marked condition the time may be that of our own verdict.
        since = one.last_transition_time
        if not one.mark and since is not None:
            yield Proof(since, f"the last transition of {one.type}")
    created = parse_time(_part(obj, "metadata").get("creationTimestamp"))
    if created is not None:
        yield Proof(created, "its creation")


def _challenged(
    watched: Iterable[Condition], writes: Iterable[Write], now: datetime, seen: Sighting | None
) -> datetime | None:
    marked = [one.type for one in watched if one.mark]
    times = [
        write.time
        for write in writes
        if write.asks and write.time and any(write.owns_message(type_) for type_ in marked)
    ]
    if not times:
        return None
    first_seen = seen.marked if seen and seen.marked else now
    if max(times) > now:
        # Clocks differ, or somebody has set the time: what counts is when it was first seen.
        return first_seen
    return max(*times, first_seen) if seen and seen.witnessed else max(times)


def _mark(status: str, message: str) -> Mark:
    if is_checking(message):
        return Mark.CHECKING
    return Mark.VERDICT if is_verdict(status, message) else Mark.NONE


def _part(obj: Object, name: str) -> Object:
    found = obj.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
