"""`quarterdeck operators`: the cluster operators and their health.

What is made of a ClusterOperator is decided in `quarterdeck.status.health`; how it looks, in
`operators_text`.
"""

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from quarterdeck import log as logs
from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.output import CommandFailed, Output, output_option, show

if TYPE_CHECKING:
    from quarterdeck.api.meta import Object
    from quarterdeck.kube import Client
    from quarterdeck.status.health import Health

REFRESH = 5.0
"""Seconds after which a watching terminal is drawn again, because times have gone on."""

_BETWEEN: dict[Output, str] = {"table": "", "json": "", "yaml": "---"}
"""What parts two showings where nothing can be drawn over."""


@click.command()
@click.argument("name", required=False)
@click.option("--watch", "-w", is_flag=True, help="Show it again at each change, until Ctrl-C.")
@cluster_access
@output_option
def operators(name: str | None, watch: bool, ask: Callable[..., Any], output: Output) -> None:
    """Show the cluster operators and their health, worst first.

    With NAME, everything about that one. Stale and disabled operators are marked. Exits with 0
    when all is well, 1 when an operator is unavailable, stale, degraded or of unknown health, 2
    when that could not be found out.
    """
    if watch:
        # Only what is in the way: each list of the cache is not worth a line here.
        logs.configure(verbosity=0)
        try:
            ask(lambda client: _follow(client, name, output))
        except KeyboardInterrupt:
            sys.exit(0)
    found = _judged(ask(_look), name)
    _print(found, name, output)
    from quarterdeck.status.health import UNWELL

    sys.exit(1 if any(one.state in UNWELL for one in found) else 0)


async def _look(client: "Client") -> "list[Object]":
    """All ClusterOperators; an error that says what is in the way."""
    from quarterdeck.kube import NotFound
    from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

    try:
        return (await client.list(PLAIN_CLUSTER_OPERATORS)).items
    except NotFound:
        raise CommandFailed(
            "the cluster does not know the resource type clusteroperators.config.openshift.io; "
            "its definition is in deploy/crds"
        ) from None


async def _follow(client: "Client", name: str | None, output: Output) -> None:
    """Print at each change; on a terminal also as time goes by."""
    from quarterdeck.kube import Cache
    from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

    await _look(client)  # so that what is in the way is said now
    changed = asyncio.Event()
    cache: Cache[Object] = Cache(client, PLAIN_CLUSTER_OPERATORS, name=name or "")
    cache.subscribe(lambda _: changed.set())
    following = asyncio.create_task(cache.run())
    try:
        await cache.wait_synced()
        shown = None
        terminal = sys.stdout.isatty() and output == "table"
        while True:
            changed.clear()
            found = _judged(cache.list(), name, missing_ok=True)
            if found != shown or terminal:
                if terminal:
                    click.clear()
                elif shown is not None:
                    click.echo(_BETWEEN[output])
                _print(found, name, output)
                shown = found
            await _wait(changed, REFRESH if terminal else None)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _wait(changed: asyncio.Event, limit: float | None) -> None:
    try:
        async with asyncio.timeout(limit):
            await changed.wait()
    except TimeoutError:
        return


def _judged(
    found: "Iterable[Object]", name: str | None, *, missing_ok: bool = False
) -> "list[Health]":
    from quarterdeck.status.health import health_of, worst_first

    judged = worst_first(health_of(one) for one in found)
    if name is None:
        return judged
    chosen = [one for one in judged if one.name == name]
    if not chosen and not missing_ok:
        known = ", ".join(sorted(one.name for one in judged)) or "none"
        raise CommandFailed(f"there is no ClusterOperator {name!r}; there are: {known}")
    return chosen


def _print(found: "list[Health]", name: str | None, output: Output) -> None:
    from quarterdeck.cli.operators_text import as_data, as_detail, as_table

    now = datetime.now(UTC)

    def text() -> str:
        if not found:
            return "no ClusterOperators" if name is None else f"{name} is gone"
        if name is not None:
            return as_detail(found[0], now)
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return as_table(found, now, width)

    data: Any = [as_data(one) for one in found]
    show(data[0] if name is not None and data else data, output, text)
