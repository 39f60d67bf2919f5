"""`quarterdeck log-level`: see and change how much the cluster version operator logs.

`operators.cluster_version.log_level` reads and writes it.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.durations import Duration
from quarterdeck.cli.output import Output, errors_in_one_line, output_option, show, table

if TYPE_CHECKING:
    from quarterdeck.kube import Client
    from quarterdeck.operators.cluster_version.log_level.request import LevelView

LEVELS = ("Normal", "Debug", "Trace", "TraceAll")


@click.group(name="log-level")
def log_level() -> None:
    """Show or change the log level of the cluster version operator."""


@log_level.command()
@cluster_access
@output_option
def get(ask: Callable[..., Any], output: Output) -> None:
    """Show the log level, whether it is in force, and when it expires."""
    from quarterdeck.operators.cluster_version.log_level.inspect import (
        LogLevelError,
        current_level,
    )

    with errors_in_one_line(LogLevelError):
        view = ask(current_level)
    show(msgspec.to_builtins(view), output, lambda: as_table(view))


@log_level.command(name="set")
@click.argument("level", type=click.Choice(LEVELS, case_sensitive=False))
@click.option(
    "--for",
    "lasting",
    type=Duration(),
    help="How long the level applies, such as 30m; the operator then restores the earlier level.",
)
@click.option(
    "--timeout",
    type=Duration(),
    default="30s",
    show_default=True,
    help="How long to wait until the level is in force.",
)
@cluster_access
@output_option
def set_(
    level: str,
    lasting: timedelta | None,
    timeout: timedelta,
    ask: Callable[..., Any],
    output: Output,
) -> None:
    """Set the log level, and return when the cluster version operator has applied it."""
    from quarterdeck.operators.cluster_version.log_level.inspect import LogLevelError, set_level

    async def change(client: "Client") -> "tuple[LevelView, LevelView]":
        return await set_level(client, level, lasting, timeout)

    with errors_in_one_line(LogLevelError):
        before, view = ask(change)
    show(msgspec.to_builtins(view), output, lambda: as_sentence(before, view))


def as_table(view: "LevelView") -> str:
    """The log level as a table row, and below it why it is ignored."""
    header = ("LEVEL", "VERBOSITY", "IN FORCE", "UNTIL", "THEN")
    in_force = "yes" if view.in_force else "no"
    row = (view.level, str(view.verbosity), in_force, view.until or "-", view.then or "-")
    text = table(header, [row])
    if view.ignored_because:
        return f"{text}\n{view.ignored_because}"
    if not view.in_force:
        return f"{text}\nnot applied yet: generation {view.generation} was not observed"
    return text


def as_sentence(before: "LevelView", view: "LevelView") -> str:
    """The new level, when it expires, and the level before."""
    text = f"log level {view.level} (verbosity {view.verbosity}) is in force"
    if view.until:
        text += f" until {view.until}, then {view.then}"
    return text if before.level == view.level else f"{text}; it was {before.level}"
