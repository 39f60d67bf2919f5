"""The report for people: a table for each measurement, its goals and notes below it."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.goals import OURS
from bench.results import Column, Measurement, Report, Row, Verdict


def show(report: Report, console: Console) -> None:
    """Print the whole report."""
    where = ", ".join(f"{key} {value}" for key, value in report.machine.items())
    console.print(f"[bold]{report.size} run[/], {report.seconds / 60:.1f} minutes; {where}")
    console.print(", ".join(f"{name} {version}" for name, version in report.versions.items()))
    for measurement in report.measurements:
        show_measurement(measurement, console)


def show_measurement(found: Measurement, console: Console) -> None:
    """Print one measurement."""
    console.print()
    console.print(figures_table(found))
    if found.verdicts:
        console.print(verdicts_table(found.verdicts))
    for row in found.rows:
        if row.problem:
            console.print(f"  [red]{row.subject}[/]: {escape(row.problem)}")
    for note in found.notes:
        console.print(f"  {note}", style="dim")


def figures_table(found: Measurement) -> Table:
    """Subjects down, figures across."""
    table = Table(title=found.title, title_justify="left", title_style="bold")
    table.add_column("", no_wrap=True)
    for column in found.columns:
        table.add_column(column.title, justify="right")
    for row in found.rows:
        style = "bold" if row.subject == OURS else None
        table.add_row(row.subject, *cells(row, found.columns), style=style)
    return table


def cells(row: Row, columns: list[Column]) -> list[str]:
    """The figures of a row as text; a row without figures says so in its first cell."""
    texts = [
        "" if value is None else format(value * column.scale, column.format) + column.unit
        for column in columns
        for value in (row.figures.get(column.figure),)
    ]
    if row.problem and not row.figures and texts:
        return ["[red]missing[/]" if row.missing else "[red]failed[/]", *texts[1:]]
    return texts


def verdicts_table(verdicts: list[Verdict]) -> Table:
    """The goals, met or missed and by how much."""
    table = Table(box=None, padding=(0, 2))
    for title in ("goal", "wanted", "reached", ""):
        table.add_column(title, justify="left" if title in {"goal", ""} else "right")
    for one in verdicts:
        reached = "—" if one.reached is None else f"{one.reached:.3g} {one.unit}".strip()
        colour = "green" if one.met else "red" if one.reached is not None else "yellow"
        table.add_row(one.goal, one.wanted, reached, f"[{colour}]{one.text}[/]")
    return table
