"""`quarterdeck handover`: who manages metal3, and what each update does to that.

`quarterdeck.metal3.model` explores the updates, `quarterdeck.metal3.inspect` reads a cluster.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.output import (
    Output,
    errors_in_one_line,
    output_option,
    readable,
    show,
    table,
)

if TYPE_CHECKING:
    from quarterdeck.metal3.inspect import HandoverStatus
    from quarterdeck.metal3.model import TableRow

HEADER = ("UPDATE", "SUPPORTED", "OWNER", "TWO WRITERS", "POD CHANGES", "STATES", "STEPS")
FAULTS = ("unfenced-claim", "keeps-both-annotations")


@click.group(cls=CommandGroup)
def handover() -> None:
    """Show who manages metal3, and simulate the updates that hand it over."""


@handover.command()
@click.option("--why", metavar="UPDATE", help="Show how this update goes wrong, as A-C.")
@click.option("--fault", type=click.Choice(FAULTS), help="Put this fault into the claim.")
@output_option
def simulate(why: str | None, fault: str | None, output: Output) -> None:
    """Explore every update between the releases A to D, with old and new operators at once.

    A has a machine API operator that ignores claims, B one that respects them, C adds the baremetal
    operator, and in D only that one knows metal3.
    """
    from quarterdeck.metal3.model import Faults, rows

    faults = Faults(**{fault.replace("-", "_"): True}) if fault else Faults()
    found = list(rows(faults))
    if why is not None:
        wanted = [one for one in found if one.edge.replace("->", "-") == why.replace("->", "-")]
        if not wanted:
            names = ", ".join(one.edge.replace("->", "-") for one in found)
            raise click.BadParameter(f"{why!r}: choose one of {names}", param_hint="--why")
        show(msgspec.to_builtins(wanted[0]), output, lambda: as_story(wanted[0]))
        return
    show([msgspec.to_builtins(one) for one in found], output, lambda: as_table(found))


@handover.command()
@cluster_access
@output_option
def status(ask: Callable[..., Any], output: Output) -> None:
    """Show which operator manages metal3 in a cluster, and what to do if none does."""
    from quarterdeck.metal3.inspect import handover_status

    found = ask(handover_status)
    show(msgspec.to_builtins(found), output, lambda: as_facts(found))


@handover.command()
@click.argument("directory", type=click.Path(path_type=Path))
def releases(directory: Path) -> None:
    """Write the releases A to D into DIRECTORY, for the cluster version operator."""
    from quarterdeck.localcluster.handover_releases import write_handover_releases
    from quarterdeck.metal3.model import RELEASES

    with errors_in_one_line(OSError):
        write_handover_releases(directory.absolute())
    for one in RELEASES.values():
        click.echo(f"{one.name}  {directory / one.version}")


def as_table(found: "list[TableRow]") -> str:
    """The table of all updates, and what refuses the unsafe ones."""
    text = table(HEADER, [_cells(one) for one in found])
    versions = {one.edge[0]: one.old_version for one in found}
    states, steps = sum(one.states for one in found), sum(one.steps for one in found)
    return "\n".join(
        [
            text,
            "",
            f"The releases are {_listed(versions)}.",
            f"{states} states and {steps} steps explored. POD CHANGES: how often the pod template",
            "changes, with the same images and with other ones.",
            "",
            "What you do by hand during these updates:",
            *(f"  {one.edge}  {one.by_hand}" for one in found if one.by_hand),
            "Updates that are not supported, and what refuses them:",
            *(f"  {one.edge}  {one.refused_by}" for one in found if not one.supported),
            "`--why A-C` shows how one of these goes wrong. A can be reached only from B.",
        ]
    )


def _listed(versions: "dict[str, str]") -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def as_story(row: "TableRow") -> str:
    """How an update goes wrong, step by step."""
    if not row.counterexample:
        return f"{row.edge}: nothing goes wrong in {row.states} states and {row.steps} steps"
    steps = [f"{number:>3}. {text}" for number, text in enumerate(row.counterexample, 1)]
    return "\n".join([f"{row.edge}: {row.violation}", *steps])


def as_facts(found: "HandoverStatus") -> str:
    """The status for people."""
    found = readable(found)
    facts = {
        "platform": found.platform,
        "metal3": "is there" if found.deployment else "is not there",
        "managed by": found.owner or "nobody",
        "field managers": ", ".join(found.field_managers) or "-",
        "pod template": found.template_hash or "-",
        "operators": ", ".join(found.running) or "none",
        "ClusterOperators": ", ".join(found.reported) or "none",
    }
    width = max(map(len, facts))
    lines = [f"{name:<{width}}  {value}" for name, value in facts.items()]
    return "\n".join([*lines, *(["", found.advice] if found.advice else [])])


def _cells(row: "TableRow") -> list[str]:
    return [
        row.edge,
        "yes" if row.supported else click.style("no", fg="red"),
        "either" if " or " in row.owner else row.owner,
        "yes" if row.two_writers else "never",
        row.template_changes,
        str(row.states),
        str(row.steps),
    ]
