"""How `quarterdeck payload` looks on a terminal; what is shown is decided elsewhere."""

import io
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from quarterdeck.operators.cluster_version.payload.explain import Explanation
from quarterdeck.operators.cluster_version.payload.findings import Finding, Severity
from quarterdeck.operators.cluster_version.payload.graph import Graph, level_label
from quarterdeck.operators.cluster_version.payload.model import Payload
from quarterdeck.operators.cluster_version.payload.observed import Observed

Command = TypeVar("Command", bound=Callable[..., Any])

_COLOURS = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}


def output_option(*formats: str) -> Callable[[Command], Command]:
    """`-o`, with the formats that a command knows; the first is the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="How to show the result.",
    )


def show(
    output: str, view: Callable[[], dict[str, Any]], table: Callable[[], RenderableType]
) -> None:
    """Print the result as data or for people; only what is printed is made."""
    match output:
        case "json":
            import json

            click.echo(json.dumps(view(), indent=2))
        case "yaml":
            import yaml

            click.echo(yaml.safe_dump(view(), sort_keys=False), nl=False)
        case _:
            _print(table())


def lint_text(payload: Payload, findings: Sequence[Finding]) -> RenderableType:
    """Each finding as compilers show it, and how many there are."""
    blocks: list[RenderableType] = [_finding(finding) for finding in findings]
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    counted = f"{len(payload.manifests)} manifests"
    if findings:
        counted += f": {_number(errors, 'error')}, {_number(len(findings) - errors, 'warning')}"
    else:
        counted += ": nothing found"
    return Group(*blocks, Text(counted))


def why_text(explanations: Sequence[Explanation], observed: Observed) -> RenderableType:
    """For each manifest, where it is, whether it counts, and the nine filters."""
    blocks: list[RenderableType] = []
    for explanation in explanations:
        manifest, by = explanation.manifest, explanation.excluded_by
        outcome = (
            Text("included", style="green")
            if by is None
            else Text(f"excluded by filter {by.number}, {by.filter}", style="red")
        )
        head = Text(f"{manifest.place} {manifest.identity}\n")
        head.append(f"profile {observed.profile}, feature set {observed.feature_set}: ")
        blocks += [head + outcome, _filters(explanation)]
    return Group(*blocks)


def graph_text(graph: Graph, title: str, total: int) -> RenderableType:
    """Every manifest in order, under its run level and component."""
    lines: list[RenderableType] = [Text(title)]
    run_level: int | None = -1
    for node in graph.nodes:
        if node.run_level != run_level:
            run_level = node.run_level
            lines.append(Text(f"run level {level_label(run_level)}", style="bold"))
        lines.append(Text(f"  {node.component or 'files without a component'}", style="cyan"))
        lines += [
            Text(f"    {manifest.identity}").append(f"  {manifest.place}", "dim")
            for manifest in node.manifests
        ]
    return Group(*lines, Text(f"{len(graph.manifests)} of {total} manifests"))


def _print(what: RenderableType) -> None:
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(what)
        return
    # A pipe has no width, and what reads it wants whole lines without padding.
    plain = Console(highlight=False, width=1000, file=io.StringIO(), color_system=None)
    with plain.capture() as capture:
        plain.print(what)
    for line in capture.get().splitlines():
        click.echo(line.rstrip())


def _finding(finding: Finding) -> RenderableType:
    head = Text(f"{finding.place}: ", style="bold")
    head.append(finding.severity.value, style=_COLOURS[finding.severity])
    head.append(f": {finding.message} [{finding.code}]", style="not bold")
    lines = [head]
    if finding.field:
        lines.append(Text(f"    {finding.field}: {finding.value}"))
    lines.append(Text(f"    {finding.remedy}", style="dim"))
    return Group(*lines)


def _filters(explanation: Explanation) -> RenderableType:
    table = _table("#", "FILTER", "EXCLUDES", "WHY")
    for verdict in explanation.verdicts:
        excludes = Text("-") if verdict.reason is None else Text("yes", style="red")
        table.add_row(str(verdict.number), verdict.filter, excludes, Text(verdict.reason or ""))
    return Padding(table, (0, 0, 1, 0))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
