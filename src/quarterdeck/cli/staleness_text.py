"""Formats explanations and probes. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from quarterdeck.api.times import format_time
from quarterdeck.cli.durations import show_duration
from quarterdeck.cli.output import readable, table
from quarterdeck.operators.staleness.decide import CheckState
from quarterdeck.operators.staleness.explain import StalenessExplanation
from quarterdeck.operators.staleness.probe import Aftermath, ConditionAnswer
from quarterdeck.terminal import cut

_COLOURS = {CheckState.ALIVE: "green", CheckState.CHALLENGED: "yellow", CheckState.STALE: "red"}


def as_text(found: StalenessExplanation) -> str:
    """The state and the next action, then the evidence."""
    found = readable(found)
    colour = _COLOURS.get(CheckState(found.state))
    facts = [
        ("operator", found.name),
        ("state", click.style(found.state, fg=colour) if colour else found.state),
        ("last alive", f"{_when(found.last_alive.time, found.now)}: {found.last_alive.by}"),
    ]
    if found.challenged_at is not None:
        facts.append(("challenged", _when(found.challenged_at, found.now)))
    if found.verdict_at is not None:
        facts.append(("verdict", _when(found.verdict_at, found.now)))
    if found.challenge_stands_since not in (None, found.challenged_at):
        since = _when(found.challenge_stands_since, found.now)
        facts.append(("counted from", f"{since}: the operator wrote, but left the messages"))
    interval = show_duration(found.interval_seconds)
    facts += [
        ("interval", f"{interval} ({found.interval_from})"),
    ]
    if found.keep_upgradeable_false or found.forbids_upgrades:
        kept = "left alone" if found.keep_upgradeable_false else "treated like the others"
        facts.append(("upgradeable", f"an Upgradeable=False is {kept} ({found.keep_from})"))
    facts.append(("next", _next(found)))
    if found.note:
        facts.append(("note", found.note))
    width = max(len(name) for name, _ in facts)
    parts = ["\n".join(f"{name:<{width}}  {value}" for name, value in facts)]
    if found.conditions:
        parts.append(_conditions(found))
    if found.writes:
        parts.append(_writes(found))
    if found.checkers:
        parts.append(_checkers(found))
    return "\n\n".join(parts)


def answers_as_data(name: str, answers: Sequence[ConditionAnswer]) -> dict[str, Any]:
    """The result of a probe for programs."""
    times = [one.seconds for one in answers]
    missing = any(seconds is None for seconds in times)
    return {
        "name": name,
        "answered": not missing,
        "seconds": None if missing else max(seconds or 0.0 for seconds in times),
        "conditions": [{"type": one.type, "seconds": one.seconds} for one in answers],
    }


def answers_as_text(
    name: str,
    answers: Sequence[ConditionAnswer],
    timeout: float,
    aftermath: Aftermath = Aftermath.PUT_BACK,
) -> str:
    """The result of a probe for people."""
    missing = [one.type for one in answers if one.seconds is None]
    limit = show_duration(timeout)
    rest = aftermath.value
    all_of_them = f"its messages are {'put back' if aftermath is Aftermath.PUT_BACK else rest}"
    if aftermath is Aftermath.GIVEN_UP:
        all_of_them = f"it was {rest}"
    if not missing:
        slowest = max(one.seconds or 0.0 for one in answers)
        first = f"{name} answered in {_seconds(slowest)}"
    elif len(missing) < len(answers):
        first = f"{name} answered in part: not {', '.join(missing)} within {limit}; {rest}"
    else:
        first = f"{name} did not answer within {limit}; {all_of_them}"
    rows = [
        [one.type, "no answer" if one.seconds is None else _seconds(one.seconds)] for one in answers
    ]
    return f"{first}\n\n{table(['CONDITION', 'ANSWERED AFTER'], rows)}"


def _seconds(time: float) -> str:
    return f"{time:.1f} s" if time >= 1 else f"{time * 1000:.0f} ms"


def _next(found: StalenessExplanation) -> str:
    if found.next is None:
        stale = found.state == CheckState.STALE
        return "nothing, until the operator writes" if stale else "nothing"
    if found.next.due:
        return f"{found.next.action} now, if a checker runs"
    left = show_duration((found.next.at - found.now).total_seconds())
    return f"{found.next.action} at {_time(found.next.at)}, in {left}, unless it writes before"


def _conditions(found: StalenessExplanation) -> str:
    rows = [
        [
            one.type,
            one.status,
            one.mark or "-",
            _time(one.last_transition_time),
            one.message_owner or "-",
            cut(" ".join(one.original_message.split()), 60),
        ]
        for one in found.conditions
    ]
    header = ["CONDITION", "STATUS", "MARK", "LAST TRANSITION", "MESSAGE OF", "ORIGINAL MESSAGE"]
    return table(header, rows)


def _writes(found: StalenessExplanation) -> str:
    rows = [
        [
            one.manager or "-",
            one.operation,
            _time(one.time),
            "yes" if one.proves_life else "no",
            ", ".join(one.messages) or "-",
        ]
        for one in found.writes
    ]
    return table(["WRITER", "OPERATION", "LAST WRITE", "PROVES LIFE", "OWNS MESSAGES"], rows)


def _checkers(found: StalenessExplanation) -> str:
    rows = [
        [
            one.name,
            show_duration(one.published.interval_seconds) if one.published else "-",
            ("yes" if one.published.keep_upgradeable_false else "no") if one.published else "-",
            _time(one.published.at) if one.published else "-",
            "yes" if one.counts else "no",
            one.remark or "-",
        ]
        for one in found.checkers
    ]
    header = ["CHECKER", "INTERVAL", "KEEPS UPGRADEABLE=FALSE", "PUBLISHED", "COUNTS", "REMARK"]
    return table(header, rows)


def _when(time: datetime | None, now: datetime) -> str:
    if time is None:
        return "-"
    ago = (now - time).total_seconds()
    return f"{_time(time)} ({show_duration(ago)} ago)" if ago >= 0 else _time(time)


def _time(time: datetime | None) -> str:
    return "-" if time is None else format_time(time)
