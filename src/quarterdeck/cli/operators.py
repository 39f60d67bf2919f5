"""`quarterdeck operators`: the cluster operators and their health.

What there is to show comes from `quarterdeck.status.inspect`; how it looks, from `operators_text`.
"""

import os
import sys
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from quarterdeck import log as logs
from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.output import Output, errors_in_one_line, output_option, show

if TYPE_CHECKING:
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
    from quarterdeck.status import inspect
    from quarterdeck.status.health import UNWELL

    with errors_in_one_line(inspect.CannotInspect):
        if watch:
            # Only what is in the way: each list of the cache is not worth a line here.
            logs.configure(verbosity=0)
            try:
                ask(lambda client: _show_again_and_again(client, name, output))
            except KeyboardInterrupt:
                sys.exit(0)
        found, judged_by = ask(lambda client: _find(client, name))
    _print(found, name, output, judged_by)
    sys.exit(1 if any(one.state in UNWELL for one in found) else 0)


class _Checkers:
    """What the checkers say about an Upgradeable=False, and how it was found out."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.source = ""

    async def keep(self) -> bool | None:
        """Whether they keep it; None when none of those that run says so."""
        from quarterdeck.operators.staleness.inspect import published

        said = await published(self._client)
        if not said.known:
            self.source = f"by the times of the conditions ({said.source})"
            return None
        kept = "keep" if said.keep_upgradeable_false else "do not keep"
        self.source = f"as the checkers {kept} an Upgradeable=False ({said.source})"
        return said.keep_upgradeable_false


async def _find(client: "Client", name: str | None) -> "tuple[list[Health], str]":
    from quarterdeck.status import inspect

    checkers = _Checkers(client)
    return await inspect.operators(client, name, checkers.keep), checkers.source


async def _show_again_and_again(client: "Client", name: str | None, output: Output) -> None:
    """Print at each change; on a terminal also as time goes by."""
    from quarterdeck.status import inspect

    terminal = sys.stdout.isatty() and output == "table" and os.environ.get("TERM") != "dumb"
    first, checkers = True, _Checkers(client)
    refresh = REFRESH if terminal else None
    async with aclosing(inspect.follow(client, name, refresh, checkers.keep)) as changes:
        async for found in changes:
            if terminal:
                click.clear()
            elif not first:
                click.echo(_BETWEEN[output])
            _print(found, name, output, checkers.source)
            first = False


def _print(found: "list[Health]", name: str | None, output: Output, judged_by: str) -> None:
    """Show them; `judged_by` says how those were judged that hang on a checker's setting."""
    from quarterdeck.cli.operators_text import as_data, as_detail, as_table, judgement

    now = datetime.now(UTC)

    def text() -> str:
        if not found:
            return "no ClusterOperators" if name is None else f"{name} is gone"
        if name is not None:
            return as_detail(found[0], now) + judgement(found[:1], judged_by)
        return as_table(found, now) + judgement(found, judged_by)

    data: Any = [as_data(one) for one in found]
    show(data[0] if name is not None and data else data, output, text)
