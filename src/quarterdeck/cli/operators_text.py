"""Formats cluster operators for people and for programs. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.cli.durations import show_duration
from quarterdeck.cli.output import readable, table
from quarterdeck.status.health import ConditionMark, OperatorHealth, OperatorState, SeenCondition
from quarterdeck.status.staleness import CHECKED

HEADER = ("NAME", "VERSION", "AVAILABLE", "PROGRESSING", "DEGRADED", "SINCE", "MESSAGE")

_COLOURS = {
    OperatorState.UNAVAILABLE: "red",
    OperatorState.STALE: "magenta",
    OperatorState.DEGRADED: "red",
    OperatorState.UNKNOWN: "yellow",
    OperatorState.PROGRESSING: "cyan",
    OperatorState.DISABLED: "bright_black",
}


def as_data(health: OperatorHealth) -> dict[str, Any]:
    """One operator for programs."""
    data: dict[str, Any] = msgspec.to_builtins(health)
    return data


def as_table(operators: Sequence[OperatorHealth], now: datetime, width: int | None = None) -> str:
    """A table of operators in the given order; with a width, messages are cut to fit."""
    shown = [readable(one) for one in operators]
    return table(HEADER, [_painted(one, _row(one, now)) for one in shown], width)


def as_detail(health: OperatorHealth, now: datetime) -> str:
    """Everything about one operator."""
    health = readable(health)
    facts = [("operator", health.name), ("state", _coloured(health.state, _state(health)))]
    facts += [(f"version of {name}", version) for name, version in health.versions.items()]
    width = max(len(name) for name, _ in facts)
    parts = ["\n".join(f"{name:<{width}}  {value}" for name, value in facts)]
    parts += ["\n".join(_condition(one, now)) for one in health.conditions]
    if health.related_objects:
        lines = [f"  {_reference(one)}" for one in health.related_objects]
        parts.append("\n".join(["related objects", *lines]))
    return "\n\n".join(parts)


def judgement(operators: Sequence[OperatorHealth], judged_by: str) -> str:
    """The rule for operators that are stale or not by the checkers' setting; empty without any."""
    names = [one.name for one in operators if one.depends_on_keeping]
    if not names or not judged_by:
        return ""
    return f"\n\nstale or not was judged {judged_by}: {', '.join(names)}"


def message(health: OperatorHealth) -> str:
    """The operator's message about its state, in one line."""
    decisive = health.decisive_condition
    if health.state is OperatorState.STALE:
        return _last_known(health)
    if decisive is None:
        return "" if health.conditions else "has not reported anything"
    return "; ".join(line.strip() for line in decisive.message.splitlines() if line.strip())


def _last_known(health: OperatorHealth) -> str:
    told = [one for one in health.conditions if one.type in CHECKED]
    silence = next((one.silence for one in told if one.silence), "a while")
    known = ", ".join(f"{one.type}={one.last_known}" for one in told)
    return f"no sign of life for more than {silence}; last known: {known}"


def _row(health: OperatorHealth, now: datetime) -> list[str]:
    statuses = [health.status(type_) or "-" for type_ in ("Available", "Progressing", "Degraded")]
    decisive = health.decisive_condition
    since = _ago(decisive.since if decisive else None, now)
    version = health.versions.get("operator", "-")
    return [_named(health), version, *statuses, since, message(health)]


def _named(health: OperatorHealth) -> str:
    """The name with its special state, which must be visible without colours."""
    if health.state in (OperatorState.STALE, OperatorState.DISABLED):
        return f"{health.name} ({health.state})"
    if health.checking:
        return f"{health.name} (being checked)"
    return health.name if health.checkable else f"{health.name} (cannot be checked)"


def _painted(health: OperatorHealth, row: list[str]) -> list[str]:
    if health.state is OperatorState.DISABLED:
        return [_coloured(health.state, cell) for cell in row]
    return [_coloured(health.state, row[0]), *row[1:]]


def _coloured(state: OperatorState, text: str) -> str:
    colour = _COLOURS.get(state)
    return click.style(text, fg=colour) if colour else text


def _state(health: OperatorHealth) -> str:
    if health.checking:
        return f"{health.state}, being checked for staleness"
    if not health.checkable:
        return f"{health.state}; cannot be checked for staleness: it applies no messages"
    return health.state


def _condition(one: SeenCondition, now: datetime) -> list[str]:
    """The lines of a condition: status, age and reason; then the unchanged message."""
    was = f", last known {one.last_known}" if one.mark is ConditionMark.STALE else ""
    since = f" for {_ago(one.since, now)}" if one.since else ""
    reason = f" ({one.reason})" if one.reason else ""
    return [
        f"{one.type}={one.status}{since}{was}{reason}",
        *(f"  {line}" for line in one.message.splitlines()),
    ]


def _reference(one: Object) -> str:
    kind = f"{one.get('resource', '')}.{one['group']}" if one.get("group") else one.get("resource")
    where = f" in {one['namespace']}" if one.get("namespace") else ""
    return f"{kind} {one.get('name') or '(all)'}{where}"


def _ago(since: datetime | None, now: datetime) -> str:
    return "-" if since is None else show_duration((now - since).total_seconds())
