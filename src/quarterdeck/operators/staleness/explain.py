"""Explains one decision of the checker: its inputs, the state, and the next action. Pure."""

from datetime import datetime

import msgspec

from quarterdeck.operators.staleness.decide import (
    Challenge,
    CheckState,
    Decision,
    LookAgain,
    Restore,
    Verdict,
    challenged_since,
)
from quarterdeck.operators.staleness.evidence import Evidence, Proof
from quarterdeck.operators.staleness.published import AssumedSettings, CheckerView
from quarterdeck.status.staleness_marks import original

EXIT_CODES = {
    CheckState.UNWATCHED: 0,
    CheckState.ALIVE: 0,
    CheckState.STALE: 1,
    CheckState.CHALLENGED: 3,
    CheckState.UNCHECKABLE: 0,
}
CANNOT_ANSWER = (
    "the operator applies its conditions without messages, so it has no way to answer and is not "
    "asked; let it report a message, or let its Lease speak for it"
)
UNDATED = (
    "the object comes without managedFields, or the operator has no messages and answers without a "
    "time: since when it is so, and so when the checker acts, only a checker that runs knows"
)


class ConditionView(msgspec.Struct, frozen=True, rename="camel"):
    """One watched condition."""

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
    """The types of the conditions whose message the manager owns."""
    proves_life: bool
    """Whether the write proves life; the checker's own writes do not."""


class Next(msgspec.Struct, frozen=True):
    """What the checker does next if the operator does not write before."""

    action: str
    at: datetime
    due: bool
    """Whether the time has come; a running checker acts any moment."""


class StalenessExplanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The inputs of the decision, the state, and the next action."""

    name: str
    state: str
    now: datetime
    interval_seconds: float
    interval_from: str
    keep_upgradeable_false: bool
    keep_from: str
    last_alive: Proof
    challenged_at: datetime | None
    """T: when the checkers wrote the challenge; the verdict then takes the place of that time."""
    verdict_at: datetime | None
    """When the checkers wrote the verdict, if the operator is stale."""
    challenge_stands_since: datetime | None
    """C: the time from which the operator could answer."""
    lease: Proof | None
    conditions: list[ConditionView]
    writes: list[WriteView]
    next: Next | None
    note: str
    """What this command cannot find out; empty if it knows everything."""
    forbids_upgrades: bool = False
    """Whether the operator has an Upgradeable=False, which a checker may leave unmarked."""
    checkers: tuple[CheckerView, ...] = ()
    """The checkers that have published their settings."""


def explanation(
    name: str,
    decision: Decision,
    now: datetime,
    assumed: AssumedSettings,
    lease: Proof | None,
    *,
    dated: bool = True,
    interval_from: str = "",
    keep_from: str = "",
    forbids_upgrades: bool = False,
) -> StalenessExplanation:
    """The explanation of a decision; `dated` means that the object has managedFields.

    `interval_from` and `keep_from` name the source of a setting that the checkers did not publish.
    """
    evidence, interval = decision.evidence, assumed.interval
    challenged = decision.state is CheckState.CHALLENGED
    stale = decision.state is CheckState.STALE
    return StalenessExplanation(
        name=name,
        state=decision.state.value,
        now=now.replace(microsecond=0),
        interval_seconds=interval.total_seconds(),
        interval_from=interval_from or assumed.source,
        keep_upgradeable_false=assumed.keep_upgradeable_false,
        keep_from=keep_from or assumed.source,
        last_alive=evidence.alive,
        challenged_at=None if stale else evidence.challenged,
        verdict_at=evidence.challenged if stale else None,
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
        checkers=assumed.checkers,
    )


def _note(state: CheckState, *, dated: bool) -> str:
    if state is CheckState.UNCHECKABLE:
        return CANNOT_ANSWER
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
