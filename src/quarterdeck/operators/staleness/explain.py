"""What the checker thinks of one operator, and when it acts next, in full. Pure."""

from datetime import datetime

import msgspec

from quarterdeck.operators.staleness.decide import (
    Challenge,
    Decision,
    LookAgain,
    Restore,
    State,
    Verdict,
    challenged_since,
)
from quarterdeck.operators.staleness.evidence import Evidence, Proof
from quarterdeck.operators.staleness.published import CheckerView, Patience
from quarterdeck.status.staleness_marks import original

EXIT_CODES = {
    State.UNWATCHED: 0,
    State.ALIVE: 0,
    State.STALE: 1,
    State.CHALLENGED: 3,
    State.UNCHECKABLE: 0,
}
MUTE = (
    "the operator applies its conditions without messages, so it has no way to answer and is not "
    "asked; let it report a message, or let its Lease speak for it"
)
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
    keep_upgradeable_false: bool
    keep_from: str
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
    forbids_upgrades: bool = False
    """Whether there is an Upgradeable=False, so that it matters whether a checker keeps it."""
    checkers: tuple[CheckerView, ...] = ()
    """Who has published its settings in the cluster."""


def explanation(
    name: str,
    decision: Decision,
    now: datetime,
    patience: Patience,
    lease: Proof | None,
    *,
    dated: bool = True,
    interval_from: str = "",
    keep_from: str = "",
    forbids_upgrades: bool = False,
) -> Explanation:
    """All there is to say about a decision; `dated` is an object that has managedFields.

    Where a setting comes from is said of each that is not the checkers'.
    """
    evidence, interval = decision.evidence, patience.interval
    challenged = decision.state is State.CHALLENGED
    return Explanation(
        name=name,
        state=decision.state.value,
        now=now.replace(microsecond=0),
        interval_seconds=interval.total_seconds(),
        interval_from=interval_from or patience.source,
        keep_upgradeable_false=patience.keep_upgradeable_false,
        keep_from=keep_from or patience.source,
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
                write.proves_life(now),
            )
            for write in evidence.writes
        ],
        next=_next(decision, now),
        note=_note(decision.state, dated=dated),
        forbids_upgrades=forbids_upgrades,
        checkers=patience.checkers,
    )


def _note(state: State, *, dated: bool) -> str:
    if state is State.UNCHECKABLE:
        return MUTE
    return "" if dated else UNDATED


def _conditions(evidence: Evidence) -> list[ConditionView]:
    def owner(type_: str) -> str:
        owners = [one.manager for one in evidence.writes if one.owns_message(type_)]
        return ", ".join(owners)

    return [
        ConditionView(
            one.type,
            one.status,
            one.last_transition_time,
            one.mark,
            owner(one.type),
            original(one.message),
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
        case Restore():
            return Next("restore the messages", now.replace(microsecond=0), due=True)
        case _:
            return None
