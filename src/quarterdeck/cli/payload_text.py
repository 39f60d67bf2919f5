"""Formats the results of `quarterdeck payload` for people. Pure.

Texts of a payload may contain escape sequences, which must not reach a terminal.
"""

from collections.abc import Iterator, Sequence

import click

from quarterdeck.cli.output import table
from quarterdeck.payload.explain import ManifestExplanation
from quarterdeck.payload.files import printable
from quarterdeck.payload.findings import Finding, Severity
from quarterdeck.payload.graph import Graph, level_label
from quarterdeck.payload.model import Payload
from quarterdeck.payload.observed import ObservedCluster

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


def lint_text(payload: Payload, findings: Sequence[Finding]) -> str:
    """Each finding in the format of compilers, and their number."""
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    found = f"{_number(errors, 'error')}, {_number(len(findings) - errors, 'warning')}"
    last = f"{_number(len(payload.manifests), 'manifest')}: {found if findings else 'all well'}"
    return "\n".join([*(line for finding in findings for line in _finding(finding)), last])


def why_text(explanations: Sequence[ManifestExplanation], observed: ObservedCluster) -> str:
    """For each manifest its place, whether it is included, and the nine filters."""
    blocks = []
    for explanation in explanations:
        by = explanation.excluded_by
        outcome = (
            click.style("included", fg="green")
            if by is None
            else click.style(f"excluded by filter {by.number}, {by.filter}", fg="red")
        )
        blocks += [
            printable(f"{explanation.manifest.identity} in {explanation.manifest.place}"),
            f"profile {observed.profile}, feature set {observed.feature_set}: {outcome}",
            _filters(explanation),
            "",
        ]
    return "\n".join(blocks[:-1])


def graph_text(graph: Graph, title: str, total: int) -> str:
    """Every manifest in order, under its run level and component."""
    lines = [title]
    run_level: int | None = -1
    for node in graph.nodes:
        if node.run_level != run_level:
            run_level = node.run_level
            level = level_label(run_level)
            lines.append(
                click.style(level if run_level is None else f"run level {level}", bold=True)
            )
        lines.append(f"  {node.component or 'files without a component'}")
        lines += [
            f"    {printable(str(manifest.identity))}  {click.style(manifest.place, dim=True)}"
            for manifest in node.manifests
        ]
    return "\n".join([*lines, f"{len(graph.manifests)} of {_number(total, 'manifest')}"])


def _finding(finding: Finding) -> Iterator[str]:
    severity = click.style(finding.severity.value, fg=_COLOURS[finding.severity], bold=True)
    place = click.style(finding.place, bold=True)
    yield f"{place}: {severity}: {printable(finding.message)} [{finding.code}]"
    if finding.field:
        yield printable(f"    {finding.field}: {finding.value}")
    yield click.style(printable(f"    {finding.remedy}"), dim=True)


def _filters(explanation: ManifestExplanation) -> str:
    rows = [
        (
            str(result.number),
            result.filter,
            "-" if result.reason is None else click.style("yes", fg="red"),
            printable(result.reason or ""),
        )
        for result in explanation.filter_results
    ]
    return table(("#", "FILTER", "EXCLUDES", "WHY"), rows)


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
