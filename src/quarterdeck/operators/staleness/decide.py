"""What to do about one ClusterOperator now: nothing, look again, challenge, or give up. Pure.

The rule, in this order; P is the interval, A the last proof of life, T the time of our marks:

1. No watched condition, or the object is being deleted: nothing. The operator has no way to
   answer, and no Lease speaks for it: it is not asked.
2. All carry the verdict: stale. Nothing more is ever written until the operator writes.
3. All are marked, some still as being checked: the challenge stands since C = T, or since A + P
   if the marks are not ours or somebody wrote since (A >= T), and never since less than A + P.
   After C + P comes the verdict.
4. Some are unmarked, so the operator is alive. After A + P comes the challenge.

Where all are marked and a Lease that speaks for the operator was renewed since, the marks are taken
off again: who lives by its Lease need not answer.

The API's times have whole seconds, rounded down. So `now` counts whole seconds only, and "after"
begins with the next one: what the verdict says about the time is then true to the letter.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.times import format_time
from quarterdeck.operators.staleness.evidence import (
    Condition,
    Evidence,
    Mark,
    Proof,
    Sighting,
    raw_conditions,
    weigh,
)
from quarterdeck.status.staleness_marks import (
    checking_message,
    original,
    recorded_status,
    verdict_message,
)

SECOND = timedelta(seconds=1)


class State(StrEnum):
    """What the checker thinks of an operator."""

    UNWATCHED = "nothing to check"
    ALIVE = "alive"
    CHALLENGED = "challenged"
    STALE = "stale"
    UNCHECKABLE = "cannot be checked"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """All that a decision may know."""

    object: Object
    now: datetime
    """By the API server's clock."""
    interval: timedelta
    keep_upgradeable_false: bool = False
    """Leave an Upgradeable=False alone."""
    lease: Proof | None = None
    """When the operator last renewed its Lease, if that counts."""
    seen: Sighting | None = None
    """What this checker has seen of the object before."""


class Nothing(msgspec.Struct, frozen=True, kw_only=True):
    """There is nothing to do until the object changes."""

    state: State
    evidence: Evidence


class LookAgain(msgspec.Struct, frozen=True, kw_only=True):
    """There will be something to do at this time, if nothing changes."""

    state: State
    evidence: Evidence
    at: datetime
    then: Literal["challenge", "verdict"]
    since: datetime
    """C while challenged, else A: the interval runs from then."""


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """Ask the operator to put its messages back."""

    evidence: Evidence
    conditions: list[Any]
    """The whole list as it is to be."""
    state: State = State.ALIVE


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Say that nobody answered, and that nothing is known any more."""

    evidence: Evidence
    conditions: list[Any]
    state: State = State.CHALLENGED


class Restore(msgspec.Struct, frozen=True, kw_only=True):
    """Take our marks off: a Lease says that the operator lives."""

    evidence: Evidence
    conditions: list[Any]
    state: State = State.ALIVE


Write = Challenge | Verdict | Restore
Decision = Nothing | LookAgain | Write


def decide(case: Case) -> Decision:
    """What to do now."""
    now = case.now.replace(microsecond=0)
    evidence = weigh(
        case.object,
        now,
        keep_upgradeable_false=case.keep_upgradeable_false,
        lease=case.lease,
        seen=case.seen,
    )
    if not evidence.conditions or case.object["metadata"].get("deletionTimestamp"):
        return Nothing(state=State.UNWATCHED, evidence=evidence)
    if evidence.cannot_answer and case.lease is None:
        return Nothing(state=State.UNCHECKABLE, evidence=evidence)
    if evidence.all_marked and _renewed_since(case, evidence, now):
        return Restore(evidence=evidence, conditions=_restored(case, evidence, now))
    if evidence.stale:
        return Nothing(state=State.STALE, evidence=evidence)
    if evidence.all_marked:
        since = challenged_since(evidence, case.interval)
        if now - since <= case.interval:
            return _later(evidence, State.CHALLENGED, since, case.interval, "verdict")
        return Verdict(evidence=evidence, conditions=_with_verdict(case, evidence, now))
    since = evidence.alive.time
    if now - since <= case.interval:
        return _later(evidence, State.ALIVE, since, case.interval, "challenge")
    return Challenge(evidence=evidence, conditions=_with_challenge(case, evidence, now))


def challenged_since(evidence: Evidence, interval: timedelta) -> datetime:
    """C: from when on the operator had its chance to answer."""
    marked, alive = evidence.challenged, evidence.alive.time
    # Our challenge carried the version of an object whose A was older than it: an A that is not
    # older means that somebody has written since. A probe asks whenever it likes.
    return alive + interval if marked is None else max(marked, alive + interval)


def _renewed_since(case: Case, evidence: Evidence, now: datetime) -> bool:
    """Whether a Lease proves that the operator lives although it has not answered."""
    if case.lease is None or not now - case.interval <= case.lease.time <= now:
        return False
    return evidence.challenged is None or case.lease.time >= evidence.challenged


def _later(
    evidence: Evidence,
    state: State,
    since: datetime,
    interval: timedelta,
    then: Literal["challenge", "verdict"],
) -> LookAgain:
    at = since + interval + SECOND
    return LookAgain(state=state, evidence=evidence, at=at, then=then, since=since)


def _with_challenge(case: Case, evidence: Evidence, now: datetime) -> list[Any]:
    """All watched messages behind the prefix; what was given up gets its status back."""
    conditions = list(raw_conditions(case.object))
    for one in evidence.conditions:
        changes = {"message": checking_message(one.message)}
        if one.mark is Mark.VERDICT:
            changes |= _status(one, recorded_status(one.message) or one.status, now)
        conditions[one.position] = conditions[one.position] | changes
    return conditions


def _restored(case: Case, evidence: Evidence, now: datetime) -> list[Any]:
    """All watched conditions as the operator left them."""
    conditions = list(raw_conditions(case.object))
    for one in evidence.conditions:
        if not one.mark:
            continue
        changed = {**conditions[one.position], "message": original(one.message)}
        if one.mark is Mark.VERDICT:
            changed |= _status(one, recorded_status(one.message) or one.status, now)
        conditions[one.position] = changed
    return conditions


def _with_verdict(case: Case, evidence: Evidence, now: datetime) -> list[Any]:
    """The verdict on all that do not have it; a status that was Unknown keeps its time."""
    conditions = list(raw_conditions(case.object))
    silent = 2 * case.interval.total_seconds()
    for one in evidence.conditions:
        if one.mark is Mark.VERDICT:
            continue
        changes = {"message": verdict_message(one.message, one.status, silent)}
        changes |= _status(one, "Unknown", now)
        conditions[one.position] = conditions[one.position] | changes
    return conditions


def _status(one: Condition, status: str, now: datetime) -> dict[str, str]:
    """A new status with its time; nothing where it is that already."""
    if one.status == status:
        return {}
    return {"status": status, "lastTransitionTime": format_time(now)}
