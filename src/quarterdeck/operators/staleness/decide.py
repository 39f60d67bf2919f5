"""Decides what to do about one ClusterOperator: nothing, look again, challenge, or verdict. Pure.

P is the interval, A the last proof of life, T the time of our marks. The first rule that fits
decides:

1. The object has no watched condition, or is being deleted: do nothing. The operator has no way to
   answer, and no Lease proves its life: do nothing but remove a text of ours.
2. All conditions carry the verdict: the operator is stale. Write nothing until the operator writes.
3. All conditions are marked, some with the challenge: the challenge counts from C. C is T; it is
   A + P if the marks are not ours or somebody wrote since (A >= T), and it is never before A + P.
   The verdict comes after C + P.
4. Some conditions are unmarked: the operator is alive. The challenge comes after A + P.

If all conditions are marked and the operator has renewed a Lease that counts since then, the
checker removes its marks: that operator need not answer.

The API's times have whole seconds, rounded down. So `now` is rounded down too, and "after" begins
with the next whole second. The verdict then never states a longer silence than there was.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.times import format_time
from quarterdeck.operators.staleness.evidence import (
    Evidence,
    Proof,
    Sighting,
    StalenessMark,
    WatchedCondition,
    evidence_of,
    raw_conditions,
)
from quarterdeck.status.staleness_marks import (
    checking_message,
    original,
    recorded_status,
    verdict_message,
)

SECOND = timedelta(seconds=1)


class CheckState(StrEnum):
    """What the checker knows of an operator."""

    UNWATCHED = "nothing to check"
    ALIVE = "alive"
    CHALLENGED = "challenged"
    STALE = "stale"
    UNCHECKABLE = "cannot be checked"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a decision."""

    object: Object
    now: datetime
    """By the API server's clock."""
    interval: timedelta
    keep_upgradeable_false: bool = False
    """Do not mark a condition Upgradeable=False."""
    lease: Proof | None = None
    """The last renewal of a Lease that counts for the operator."""
    seen: Sighting | None = None
    """What this checker has seen of the object before."""


class Nothing(msgspec.Struct, frozen=True, kw_only=True):
    """Do nothing until the object changes."""

    state: CheckState
    evidence: Evidence


class LookAgain(msgspec.Struct, frozen=True, kw_only=True):
    """Decide again at this time, if the object does not change before."""

    state: CheckState
    evidence: Evidence
    at: datetime
    then: Literal["challenge", "verdict"]
    since: datetime
    """The start of the interval: C while challenged, else A."""


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """Ask the operator to put its messages back."""

    evidence: Evidence
    conditions: list[Any]
    """The whole new list."""
    state: CheckState = CheckState.ALIVE


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Set the conditions to Unknown: the operator did not answer."""

    evidence: Evidence
    conditions: list[Any]
    state: CheckState = CheckState.CHALLENGED


class Restore(msgspec.Struct, frozen=True, kw_only=True):
    """Remove our texts: a Lease proves that the operator is alive, or it has no way to do so."""

    evidence: Evidence
    conditions: list[Any]
    state: CheckState = CheckState.ALIVE


Write = Challenge | Verdict | Restore
Decision = Nothing | LookAgain | Write


def decide(case: Case) -> Decision:
    """The decision about one operator at one time."""
    now = case.now.replace(microsecond=0)
    evidence = evidence_of(
        case.object,
        now,
        keep_upgradeable_false=case.keep_upgradeable_false,
        lease=case.lease,
        seen=case.seen,
    )
    if not evidence.conditions or case.object["metadata"].get("deletionTimestamp"):
        return Nothing(state=CheckState.UNWATCHED, evidence=evidence)
    if evidence.cannot_answer and case.lease is None:
        if any(original(one.message) != one.message for one in evidence.conditions):
            # An operator that was given up before restores its statuses, and not the messages.
            restored = _restored(case, evidence, now)
            return Restore(state=CheckState.UNCHECKABLE, evidence=evidence, conditions=restored)
        return Nothing(state=CheckState.UNCHECKABLE, evidence=evidence)
    if evidence.all_marked and _renewed_since(case, evidence, now):
        return Restore(evidence=evidence, conditions=_restored(case, evidence, now))
    if evidence.stale:
        return Nothing(state=CheckState.STALE, evidence=evidence)
    if evidence.all_marked:
        since = challenged_since(evidence, case.interval)
        if now - since <= case.interval:
            return _later(evidence, CheckState.CHALLENGED, since, case.interval, "verdict")
        return Verdict(evidence=evidence, conditions=_with_verdict(case, evidence, now))
    since = evidence.alive.time
    if now - since <= case.interval:
        return _later(evidence, CheckState.ALIVE, since, case.interval, "challenge")
    return Challenge(evidence=evidence, conditions=_with_challenge(case, evidence, now))


def challenged_since(evidence: Evidence, interval: timedelta) -> datetime:
    """C: the time from which the operator could answer."""
    marked, alive = evidence.challenged, evidence.alive.time
    # Our challenge was fenced by an object whose A was older than the challenge. A later A means
    # that somebody has written since. A probe may challenge at any time.
    return alive + interval if marked is None else max(marked, alive + interval)


def _renewed_since(case: Case, evidence: Evidence, now: datetime) -> bool:
    """Whether a Lease proves that the operator is alive although it has not answered."""
    if case.lease is None or not now - case.interval <= case.lease.time <= now:
        return False
    return evidence.challenged is None or case.lease.time >= evidence.challenged


def _later(
    evidence: Evidence,
    state: CheckState,
    since: datetime,
    interval: timedelta,
    then: Literal["challenge", "verdict"],
) -> LookAgain:
    at = since + interval + SECOND
    return LookAgain(state=state, evidence=evidence, at=at, then=then, since=since)


def _with_challenge(case: Case, evidence: Evidence, now: datetime) -> list[Any]:
    """The conditions with the challenge; one with a verdict gets its earlier status back."""
    conditions = list(raw_conditions(case.object))
    for one in evidence.conditions:
        changes = {"message": checking_message(one.message)}
        if one.mark is StalenessMark.VERDICT:
            changes |= _status(one, recorded_status(one.message) or one.status, now)
        conditions[one.position] = conditions[one.position] | changes
    return conditions


def _restored(case: Case, evidence: Evidence, now: datetime) -> list[Any]:
    """The conditions as the operator last wrote them."""
    conditions = list(raw_conditions(case.object))
    for one in evidence.conditions:
        if original(one.message) == one.message:
            continue
        changed = {**conditions[one.position], "message": original(one.message)}
        if one.mark is StalenessMark.VERDICT:
            changed |= _status(one, recorded_status(one.message) or one.status, now)
        conditions[one.position] = changed
    return conditions


def _with_verdict(case: Case, evidence: Evidence, now: datetime) -> list[Any]:
    """The conditions with the verdict; a status that was Unknown keeps its transition time."""
    conditions = list(raw_conditions(case.object))
    silent = 2 * case.interval.total_seconds()
    for one in evidence.conditions:
        if one.mark is StalenessMark.VERDICT:
            continue
        changes = {"message": verdict_message(one.message, one.status, silent)}
        changes |= _status(one, "Unknown", now)
        conditions[one.position] = conditions[one.position] | changes
    return conditions


def _status(one: WatchedCondition, status: str, now: datetime) -> dict[str, str]:
    """The changed status and its transition time; empty if the status stays the same."""
    if one.status == status:
        return {}
    return {"status": status, "lastTransitionTime": format_time(now)}
