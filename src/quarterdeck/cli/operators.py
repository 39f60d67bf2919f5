"""`quarterdeck operators`: the cluster operators and their health.

`quarterdeck.status.inspect` reads them; `operators_text` formats them.
"""

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from quarterdeck import log as logs
from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.output import Output, errors_in_one_line, output_option, show, terminal_columns

if TYPE_CHECKING:
    from datetime import datetime

    from quarterdeck.kube import Client
    from quarterdeck.status.health import OperatorHealth

REFRESH = 5.0
"""Seconds after which `--watch` draws the terminal again, because the times in it have grown."""

_SEPARATORS: dict[Output, str] = {"table": "", "json": "", "yaml": "---"}
"""The line between two outputs of `--watch` if the output is no terminal."""


@click.command()
@click.argument("name", required=False)
@click.option(
    "--watch", "-w", is_flag=True, help="Show the operators again at each change, until Ctrl-C."
)
@cluster_access
@output_option
def operators(name: str | None, watch: bool, ask: Callable[..., Any], output: Output) -> None:
    """Show the cluster operators and their health, worst first.

    With NAME, show all details of that operator. The exit code is 0 if all operators are healthy; 1
    if one is unavailable, stale, degraded or of unknown health; 2 if their health cannot be read.
    """
    from quarterdeck.status import inspect
    from quarterdeck.status.health import NEED_ATTENTION

    with errors_in_one_line(inspect.CannotInspect):
        if watch:
            # Errors only: the cache logs each of its lists at the default verbosity.
            logs.configure(verbosity=0)
            try:
                ask(lambda client: _show_changes(client, name, output))
            except KeyboardInterrupt:
                sys.exit(0)
        found, judged_by, now = ask(lambda client: _find(client, name))
    _print(found, name, output, judged_by, now)
    sys.exit(1 if any(one.state in NEED_ATTENTION for one in found) else 0)


async def _find(client: "Client", name: str | None) -> "tuple[list[OperatorHealth], str, datetime]":
    from quarterdeck.operators.staleness.inspect import UpgradeableRule
    from quarterdeck.status import inspect

    checkers = UpgradeableRule(client)
    found = await inspect.operators(client, name, checkers.keep)
    return found, checkers.source, client.now()


async def _show_changes(client: "Client", name: str | None, output: Output) -> None:
    """Print at each change; on a terminal also as the times in the table grow."""
    from quarterdeck.operators.staleness.inspect import UpgradeableRule
    from quarterdeck.status import inspect

    draws = output == "table" and os.environ.get("TERM") != "dumb"
    terminal = draws and terminal_columns() is not None
    first, checkers = True, UpgradeableRule(client)

    def print_again(found: "list[OperatorHealth]") -> None:
        nonlocal first
        if terminal:
            click.clear()
        elif not first:
            click.echo(_SEPARATORS[output])
        _print(found, name, output, checkers.source, client.now())
        first = False

    refresh = REFRESH if terminal else None
    await inspect.watch(client, print_again, name=name, refresh=refresh, keeps=checkers.keep)


def _print(
    found: "list[OperatorHealth]", name: str | None, output: Output, judged_by: str, now: "datetime"
) -> None:
    """Print the operators at this time, by the API server's clock.

    `judged_by` is the rule for those that a checker's setting decides.
    """
    from quarterdeck.cli.operators_text import as_data, as_detail, as_table, judgement

    def text() -> str:
        if not found:
            return "no ClusterOperators" if name is None else f"{name} is gone"
        if name is not None:
            return as_detail(found[0], now) + judgement(found[:1], judged_by)
        return as_table(found, now) + judgement(found, judged_by)

    data: Any = [as_data(one) for one in found]
    show(data[0] if name is not None and data else data, output, text)
