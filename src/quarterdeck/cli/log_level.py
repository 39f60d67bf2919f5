"""`quarterdeck log-level`: see and change how much the cluster version operator logs.

What is said and written is decided in `operators.cluster_version.log_level.request`.
"""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
import msgspec

from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.durations import Duration
from quarterdeck.cli.output import CommandFailed, Output, output_option, show, table

if TYPE_CHECKING:
    from quarterdeck.api.meta import Resource
    from quarterdeck.kube import Client
    from quarterdeck.operators.cluster_version.log_level.request import LevelView, Seen

LOOK_EVERY = 0.1
LEVELS = ("Normal", "Debug", "Trace", "TraceAll")


@click.group(name="log-level")
def log_level() -> None:
    """See and change how much the cluster version operator logs."""


@log_level.command()
@cluster_access
@output_option
def get(ask: Callable[..., Any], output: Output) -> None:
    """Show the log level, whether it is in force, and when it runs out."""
    from quarterdeck.operators.cluster_version.log_level.request import level_view

    view = level_view(ask(look))
    show(msgspec.to_builtins(view), output, lambda: as_table(view))


@log_level.command(name="set")
@click.argument("level", type=click.Choice(LEVELS, case_sensitive=False))
@click.option(
    "--for",
    "lasting",
    type=Duration(),
    help="Go back to the level before after this time, like 30m. The operator does it by itself.",
)
@click.option(
    "--timeout",
    type=Duration(),
    default="30s",
    show_default=True,
    help="How long to wait until it is in force.",
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

    async def change(client: "Client") -> "tuple[LevelView, LevelView]":
        return await set_level(client, level, lasting, timeout)

    before, view = ask(change)
    show(msgspec.to_builtins(view), output, lambda: as_sentence(before, view))


async def look(client: "Client") -> "Seen":
    """The objects that decide about the log level; an error that says what to do without one."""
    from quarterdeck.api.config_v1 import CLUSTER_VERSIONS, FEATURE_GATES
    from quarterdeck.operators.cluster_version.log_level.controller import CONFIGS
    from quarterdeck.operators.cluster_version.log_level.request import Seen

    config = await _find(client, CONFIGS, "cluster")
    if config is None:
        raise CommandFailed(await _why_no_config(client))
    return Seen(
        config=config,
        gates=await _find(client, FEATURE_GATES, "cluster"),
        version=await _find(client, CLUSTER_VERSIONS, "version"),
    )


async def set_level(
    client: "Client", level: str, lasting: timedelta | None, timeout: timedelta
) -> "tuple[LevelView, LevelView]":
    """The log level before, and after it was set and applied."""
    from quarterdeck.operators.cluster_version.log_level.controller import CONFIGS
    from quarterdeck.operators.cluster_version.log_level.request import (
        level_patch,
        level_view,
        why_gate_is_off,
    )

    seen = await look(client)
    if why := why_gate_is_off(seen):
        raise CommandFailed(why)
    now = client.server_time() or datetime.now(UTC)
    patch = level_patch(seen.config, level, lasting, now)
    changed = await client.patch(CONFIGS, "cluster", patch, field_manager="quarterdeck-cli")
    wanted = changed["metadata"]["generation"]
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        view = level_view(await look(client))
        if view.observed_generation >= wanted:
            return level_view(seen), view
        if time.monotonic() > deadline:
            raise CommandFailed(
                f"{level} was accepted, but is not in force after {timeout.total_seconds():g} s: "
                "see whether the cluster version operator runs, with: "
                "kubectl get pods --namespace openshift-cluster-version"
            )
        await asyncio.sleep(LOOK_EVERY)


async def _find(client: "Client", resource: "Resource[Any]", name: str) -> Any:
    """The object; None without one, or without its type."""
    from quarterdeck.kube import NotFound

    try:
        return await client.get(resource, name)
    except NotFound:
        return None


async def _why_no_config(client: "Client") -> str:
    from quarterdeck.kube import NotFound
    from quarterdeck.operators.cluster_version.log_level.controller import CONFIGS

    try:
        await client.list(CONFIGS)
    except NotFound:
        return (
            "this cluster has no log level to set: there is no resource type "
            f"{CONFIGS.plural}.{CONFIGS.group}; it comes with Quarterdeck's release"
        )
    return (
        "there is no ClusterVersionOperator cluster, so the log level is Normal; the release has "
        "one, and until it is there again this makes one: kubectl create --filename "
        "deploy/cluster-version/config.yaml"
    )


def as_table(view: "LevelView") -> str:
    """The log level in a row, and below it why it is ignored."""
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
    """What was changed, after it is in force."""
    text = f"log level {view.level} (verbosity {view.verbosity}) is in force"
    if view.until:
        text += f" until {view.until}, then {view.then}"
    return text if before.level == view.level else f"{text}; it was {before.level}"
