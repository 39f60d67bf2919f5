"""`quarterdeck log-level`: see and change how much the cluster version operator logs.

`operators.cluster_version.log_level` reads and writes it.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.cluster import with_kubectl
from quarterdeck.cli.durations import Duration
from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.output import Output, errors_in_one_line, output_option, readable, show, table

if TYPE_CHECKING:
    from quarterdeck.api.meta import Key
    from quarterdeck.kube import Client
    from quarterdeck.operators.cluster_version.log_level.request import LevelView
    from quarterdeck.operators.hosted.inspect import HostedLevelView

LEVELS = ("Normal", "Debug", "Trace", "TraceAll")


class HostedClusterName(click.ParamType[Any]):
    """The namespace and name of a HostedCluster: `NAMESPACE/NAME`."""

    name = "namespace/name"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "Key":
        """The key, or a usage error."""
        from quarterdeck.api.meta import Key

        namespace, _, name = str(value).partition("/")
        if not namespace or not name or "/" in name:
            self.fail(f"{value!r}: write it as NAMESPACE/NAME", param, ctx)
        return Key(namespace, name)


hosted_option = click.option(
    "--hosted",
    type=HostedClusterName(),
    metavar="NAMESPACE/NAME",
    help="The log level of this HostedCluster, in its management cluster.",
)


@click.group(cls=CommandGroup, name="log-level")
def log_level() -> None:
    """Show or change the log level of the cluster version operator."""


@log_level.command()
@hosted_option
@cluster_access
@output_option
def get(hosted: "Key | None", ask: Callable[..., Any], output: Output) -> None:
    """Show the log level, whether it is in force, and when it expires.

    With --hosted, show it at each step on its way to the hosted cluster version operator, and where
    it stopped.
    """
    if hosted is not None:
        _get_hosted(hosted, ask, output)
        return
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
@hosted_option
@cluster_access
@output_option
def set_(
    level: str,
    hosted: "Key | None",
    lasting: timedelta | None,
    timeout: timedelta,
    ask: Callable[..., Any],
    output: Output,
) -> None:
    """Set the log level, and return when the cluster version operator has applied it.

    With --hosted, return when the level is in the configuration file of the hosted cluster version
    operator, which applies it within a second.
    """
    if hosted is not None:
        if lasting is not None:
            raise click.UsageError("--for: a hosted cluster's level does not expire; set it again")
        _set_hosted(hosted, level, timeout, ask, output)
        return
    from quarterdeck.operators.cluster_version.log_level.inspect import LogLevelError, set_level

    async def change(client: "Client") -> "tuple[LevelView, LevelView]":
        return await set_level(client, level, lasting, timeout)

    with errors_in_one_line(LogLevelError):
        before, view = ask(change)
    show(msgspec.to_builtins(view), output, lambda: as_sentence(before, view))


def as_table(view: "LevelView") -> str:
    """The log level as a table row, and below it why it is ignored."""
    view = readable(view)
    header = ("LEVEL", "VERBOSITY", "IN FORCE", "UNTIL", "THEN")
    in_force = "yes" if view.in_force else "no"
    row = (view.level, str(view.verbosity), in_force, view.until or "-", view.then or "-")
    text = table(header, [row])
    if view.ignored_because:
        return f"{text}\n{with_kubectl(view.ignored_because)}"
    if not view.in_force:
        return f"{text}\nnot applied yet: generation {view.generation} was not observed"
    return text


def as_sentence(before: "LevelView", view: "LevelView") -> str:
    """The new level, when it expires, and the level before."""
    before, view = readable(before), readable(view)
    text = f"log level {view.level} (verbosity {view.verbosity}) is in force"
    if view.until:
        text += f" until {view.until}, then {view.then}"
    return text if before.level == view.level else f"{text}; it was {before.level}"


def _get_hosted(hosted: "Key", ask: Callable[..., Any], output: Output) -> None:
    from quarterdeck.operators.hosted.inspect import HostedLevelError, hosted_level

    with errors_in_one_line(HostedLevelError):
        view = ask(lambda client: hosted_level(client, hosted))
    show(msgspec.to_builtins(view), output, lambda: as_steps(view))


def _set_hosted(
    hosted: "Key", level: str, timeout: timedelta, ask: Callable[..., Any], output: Output
) -> None:
    from quarterdeck.operators.hosted.inspect import HostedLevelError, set_hosted_level

    with errors_in_one_line(HostedLevelError):
        before, view = ask(lambda client: set_hosted_level(client, hosted, level, timeout))
    text = f"log level {view.level} is in the configuration file of {hosted}"
    was = "" if before.level == view.level else f"; it was {before.level}"
    show(msgspec.to_builtins(view), output, lambda: text + was)


def as_steps(view: "HostedLevelView") -> str:
    """A table of the steps of a hosted cluster's level, and below it where it stopped."""
    view = readable(view)
    text = table(("STEP", "OBJECT", "LEVEL"), [(it.kind, it.name, it.level) for it in view.steps])
    if view.because:
        return f"{text}\nit stopped at the {view.stopped_at}: {view.because}"
    return text
