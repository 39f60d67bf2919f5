"""Finds an operator's last sign of life in its ClusterOperator. Pure.

The API server records in `metadata.managedFields` when each manager last changed the fields that
it owns. So the object itself dates the operator's last write and our own challenge, and a checker
that restarts loses nothing. `decide` makes the decision.

Objects are plain dictionaries and may be malformed: no status, conditions without fields, times
that cannot be parsed. A value that cannot be read counts as absent.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.times import parse_time
from quarterdeck.status.staleness import CHECKED, is_stale
from quarterdeck.status.staleness_marks import is_checking, is_verdict
from quarterdeck.status.writers import ManagerWrite, cannot_answer, condition_writes

SIGHTING_PRECISION = timedelta(seconds=1)
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class StalenessMark(StrEnum):
    """The checker's mark on a condition, known by the condition's text alone."""

    NONE = ""
    CHECKING = "checking"
    VERDICT = "verdict"


class WatchedCondition(msgspec.Struct, frozen=True, kw_only=True):
    """One watched condition; what cannot be read is empty."""

    position: int
    """In `status.conditions`."""
    type: str
    status: str
    message: str
    last_transition_time: datetime | None
    mark: StalenessMark


class Proof(msgspec.Struct, frozen=True):
    """When the operator was alive, and what proves it."""

    time: datetime
    by: str
    """What proves it, for people to read."""


NOTHING = Proof(LONG_AGO, "nothing")


class Sighting(msgspec.Struct, frozen=True):
    """What this checker saw itself; the object does not record it."""

    alive: datetime | None
    """The last sign of life; None if there was none."""
    marked: datetime | None
    """Since when all conditions are marked; None while they are not."""
    witnessed: bool = False
    """Whether this checker also saw the conditions before they were marked."""
    first: datetime | None = None
    """When this checker first saw the object."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The facts for the decision."""

    conditions: tuple[WatchedCondition, ...]
    """The watched conditions that the object has."""
    writes: tuple[ManagerWrite, ...]
    """Who has written under `status.conditions`, and when."""
    alive: Proof
    """A: the last proof of life."""
    challenged: datetime | None
    """T: when the checkers wrote the marks; None if somebody else did."""
    stale: bool
    """Whether all conditions carry the verdict."""
    cannot_answer: bool
    """Whether the operator cannot restore its messages even if it runs."""

    @property
    def all_marked(self) -> bool:
        """Whether every watched condition carries a mark."""
        return all(one.mark for one in self.conditions)


def evidence_of(
    obj: Object,
    now: datetime,
    *,
    keep_upgradeable_false: bool = False,
    lease: Proof | None = None,
    seen: Sighting | None = None,
) -> Evidence:
    """The evidence in the object and in what this checker has seen of it before."""
    found = tuple(conditions_of(obj))
    watched = watched_of(found, keep_upgradeable_false=keep_upgradeable_false)
    writes = tuple(condition_writes(obj))
    proofs = [*_proofs(obj, watched, writes, now)]
    proofs += [lease] if lease else []
    if seen and seen.alive:
        proofs.append(Proof(seen.alive, _named_by(seen.alive, proofs)))
    # A time in the future proves nothing now, and would hide a dead operator until then.
    proofs = [proof for proof in proofs if proof.time <= now]
    dated = has_managed_fields(obj)
    marked = seen.marked if seen else None
    # If all times lie in the future, only the first look is left.
    nothing = Proof(seen.first, "the first look") if seen and seen.first else NOTHING
    return Evidence(
        conditions=watched,
        writes=writes,
        alive=max(proofs, key=lambda proof: proof.time, default=nothing),
        challenged=_challenged(watched, writes, now, seen) if dated else marked,
        cannot_answer=cannot_answer(obj),
        stale=is_stale(found, keep_upgradeable_false=keep_upgradeable_false),
    )


def _named_by(seen: datetime, proofs: Iterable[Proof]) -> str:
    """What this checker saw then: a proof of the object, if there is one of that second.

    A sighting is rounded up to the next second.
    """
    same = [proof for proof in proofs if timedelta() <= seen - proof.time <= SIGHTING_PRECISION]
    found = max(same, key=lambda proof: proof.time, default=None)
    return "a change that this checker saw" if found is None else found.by


def conditions_of(obj: Object) -> Iterator[WatchedCondition]:
    """The conditions of the four types, in the object's order."""
    for position, entry in enumerate(raw_conditions(obj)):
        if not isinstance(entry, dict) or entry.get("type") not in CHECKED:
            continue
        status, message = _text(entry.get("status")), _text(entry.get("message"))
        yield WatchedCondition(
            position=position,
            type=entry["type"],
            status=status,
            message=message,
            last_transition_time=parse_time(entry.get("lastTransitionTime")),
            mark=_mark(status, message),
        )


def watched_of(
    found: Iterable[WatchedCondition], *, keep_upgradeable_false: bool
) -> tuple[WatchedCondition, ...]:
    """Those of the conditions that a checker marks."""
    return tuple(
        one
        for one in found
        if not (keep_upgradeable_false and (one.type, one.status) == ("Upgradeable", "False"))
    )


def has_managed_fields(obj: Object) -> bool:
    """Whether the object has managedFields; a proxy may strip them."""
    return bool(_part(obj, "metadata").get("managedFields"))


def raw_conditions(obj: Object) -> list[Any]:
    """`status.conditions` unchanged; empty if there is no list."""
    found = _part(obj, "status").get("conditions")
    return found if isinstance(found, list) else []


def _proofs(
    obj: Object, watched: Iterable[WatchedCondition], writes: Iterable[ManagerWrite], now: datetime
) -> Iterator[Proof]:
    for write in writes:
        if write.time is not None and write.proves_life(now):
            yield Proof(write.time, f"a write by {write.manager or 'an unnamed manager'}")
    for one in watched:
        # The transition time of a marked condition may be that of our own verdict.
        since = one.last_transition_time
        if not one.mark and since is not None:
            yield Proof(since, f"the last transition of {one.type}")
    created = parse_time(_part(obj, "metadata").get("creationTimestamp"))
    if created is not None:
        yield Proof(created, "its creation")


def _challenged(
    watched: Iterable[WatchedCondition],
    writes: Iterable[ManagerWrite],
    now: datetime,
    seen: Sighting | None,
) -> datetime | None:
    marked = [one.type for one in watched if one.mark]
    times = [
        write.time
        for write in writes
        if write.by_checker and write.time and any(write.owns_message(type_) for type_ in marked)
    ]
    if not times:
        return None
    first_seen = seen.marked if seen and seen.marked else now
    if max(times) > now:
        # Clocks differ, or somebody has set the time: count from the first sighting.
        return first_seen
    return max(*times, first_seen) if seen and seen.witnessed else max(times)


def _mark(status: str, message: str) -> StalenessMark:
    if is_checking(message):
        return StalenessMark.CHECKING
    return StalenessMark.VERDICT if is_verdict(status, message) else StalenessMark.NONE


def _part(obj: Object, name: str) -> Object:
    found = obj.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
