"""What the checker thinks of one operator, and when it acts next, in full. Pure."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.operators.staleness.decide import (
    Challenge,
    Decision,
    LookAgain,
    State,
    Verdict,
    challenged_since,
)
from quarterdeck.operators.staleness.evidence import Evidence, Proof
from quarterdeck.status.staleness_marks import original

EXIT_CODES = {State.UNWATCHED: 0, State.ALIVE: 0, State.STALE: 1, State.CHALLENGED: 3}
INTERVAL_FLAG = "--interval="
KEEP_FLAG = "--keep-upgradeable-false"
UNDATED = (
    "the object comes without managedFields: since when it is so, and so when the checker acts, "
    "only a checker that runs knows"
)


class ConditionView(msgspec.Struct, frozen=True, rename="camel"):
    """One of the four conditions."""

    type: str
    status: str
    last_transition_time: datetime | None
    mark: str
    message_owner: str
    original_message: str


class WriteView(msgspec.Struct, frozen=True, rename="camel"):
    """One manager's last write under `status.conditions`."""

    manager: str
    operation: str
    time: datetime | None
    messages: list[str]
    """Of which conditions it owns the message."""
    proves_life: bool
    """Whether it counts: the checker's own writes do not."""


class Next(msgspec.Struct, frozen=True):
    """What the checker does next, unless the operator writes before."""

    action: str
    at: datetime
    due: bool
    """The time has come: a checker that runs is about to."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The inputs of the decision, the state, and what follows."""

    name: str
    state: str
    now: datetime
    interval_seconds: float
    interval_from: str
    last_alive: Proof
    challenged_at: datetime | None
    """T: when the checker put its marks there."""
    challenge_stands_since: datetime | None
    """C: from when the operator's time to answer is counted."""
    lease: Proof | None
    conditions: list[ConditionView]
    writes: list[WriteView]
    next: Next | None
    note: str
    """What cannot be known from here; empty where that is nothing."""


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that an explanation assumes, and where they come from."""

    interval: timedelta
    keep_upgradeable_false: bool
    source: str


def explanation(
    name: str,
    decision: Decision,
    now: datetime,
    patience: Patience,
    lease: Proof | None,
    *,
    dated: bool = True,
) -> Explanation:
    """All there is to say about a decision; `dated` is an object that has managedFields."""
    evidence, interval = decision.evidence, patience.interval
    challenged = decision.state is State.CHALLENGED
    return Explanation(
        name=name,
        state=decision.state.value,
        now=now.replace(microsecond=0),
        interval_seconds=interval.total_seconds(),
        interval_from=patience.source,
        last_alive=evidence.alive,
        challenged_at=evidence.challenged,
        challenge_stands_since=challenged_since(evidence, interval) if challenged else None,
        lease=lease,
        conditions=_conditions(evidence),
        writes=[
            WriteView(
                write.manager,
                write.operation,
                write.time,
                ["(the whole list)"] if write.whole else sorted(write.messages),
                not write.ours,
            )
            for write in evidence.writes
        ],
        next=_next(decision, now),
        note="" if dated else UNDATED,
    )


def running_with(pods: list[Object]) -> tuple[str, list[str]] | None:
    """A checker's pod and its arguments; None when there is none."""
    for pod in pods:
        for container in pod.get("spec", {}).get("containers", []):
            arguments: list[Any] = container.get("args") or []
            if "--operator=staleness" in arguments:
                meta = pod["metadata"]
                return f"pod {meta['namespace']}/{meta['name']}", [str(arg) for arg in arguments]
    return None


def _conditions(evidence: Evidence) -> list[ConditionView]:
    def owner(type_: str) -> str:
        owners = [one.manager for one in evidence.writes if one.whole or type_ in one.messages]
        return ", ".join(owners)

    return [
        ConditionView(
            one.type, one.status, one.changed, one.mark, owner(one.type), original(one.message)
        )
        for one in evidence.conditions
    ]


def _next(decision: Decision, now: datetime) -> Next | None:
    match decision:
        case LookAgain():
            return Next(decision.then, decision.at, due=False)
        case Challenge():
            return Next("challenge", now.replace(microsecond=0), due=True)
        case Verdict():
            return Next("verdict", now.replace(microsecond=0), due=True)
        case _:
            return None
