"""`quarterdeck payload`: check a payload, say why a manifest is skipped, show the order.

The commands need no cluster. The package `payload` decides; this module shows the results.
"""

import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from quarterdeck.api.config_v1 import ComponentOverride
from quarterdeck.cli import payload_text
from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.output import (
    EXIT_CANNOT,
    CommandFailed,
    Output,
    errors_in_one_line,
    output_option,
    show,
)
from quarterdeck.feature_gates import FEATURE_SETS
from quarterdeck.payload.described import DescribedCluster, parse_override
from quarterdeck.payload.explain import (
    explain_all,
    suggestions,
)
from quarterdeck.payload.filters import included
from quarterdeck.payload.graph import Mode, build_graph
from quarterdeck.payload.lint import lint as lint_payload
from quarterdeck.payload.load import read_payload
from quarterdeck.payload.locate import with_lines
from quarterdeck.payload.model import Payload, PayloadError
from quarterdeck.payload.observed import CAPABILITIES, PROFILES, SELF_MANAGED
from quarterdeck.payload.picture import to_dot, to_svg
from quarterdeck.payload.releases import releases_in
from quarterdeck.payload.seal import SUMS, seal
from quarterdeck.payload.views import graph_view, lint_view, why_view


def _payload_directories(
    _ctx: click.Context, _param: click.Parameter, directories: tuple[Path, ...]
) -> tuple[Path, ...]:
    """The directories; one that holds releases, and is none itself, ends the command."""
    for directory in directories:
        if found := releases_in(directory):
            raise CommandFailed(
                f"{directory} is a directory of releases; name one of them: "
                f"{', '.join(str(directory / name) for name in found)}"
            )
    return directories


directories_argument = click.argument(
    "directories",
    metavar="DIR...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    callback=_payload_directories,
)


@click.group(cls=CommandGroup)
def payload() -> None:
    """Check the manifests of a release, without a cluster.

    A payload is the directory of manifests of a release. DIR contains manifests, or one directory
    of manifests per component. Several DIRs are read as one payload.
    """


def observed_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that describe a cluster; the command gets them as one value."""

    @click.option(
        "--profile",
        default=SELF_MANAGED,
        show_default=True,
        help=f"The cluster profile, such as {', '.join(PROFILES[1:])}.",
    )
    @click.option(
        "--feature-set",
        type=click.Choice(FEATURE_SETS),
        default=FEATURE_SETS[0],
        show_default=True,
        metavar="NAME",
        help=f"The cluster's feature set: {', '.join(FEATURE_SETS)}.",
    )
    @click.option("--gate", "gates_on", multiple=True, help="Enable this feature gate.")
    @click.option("--no-gate", "gates_off", multiple=True, help="Disable this feature gate.")
    @click.option(
        "--no-capability",
        "disabled",
        multiple=True,
        type=click.Choice(sorted(CAPABILITIES)),
        metavar="NAME",
        help="Disable this capability; all others are enabled.",
    )
    @click.option("--cluster-id", default="", help="The id of the cluster in exclude annotations.")
    @click.option("--major-version", type=int, help="The release's major version.")
    @click.option(
        "--unmanaged",
        multiple=True,
        metavar="KIND[.GROUP]/[NAMESPACE/]NAME",
        callback=lambda _ctx, _param, values: tuple(map(_unmanaged, values)),
        help="Treat this object as unmanaged, as by ClusterVersion.spec.overrides.",
    )
    @functools.wraps(command)
    def wrapped(
        *,
        profile: str,
        feature_set: str,
        gates_on: tuple[str, ...],
        gates_off: tuple[str, ...],
        disabled: tuple[str, ...],
        cluster_id: str,
        major_version: int | None,
        unmanaged: tuple[ComponentOverride, ...],
        **rest: Any,
    ) -> None:
        cluster = DescribedCluster(
            profile=profile,
            cluster_id=cluster_id,
            feature_set=feature_set,
            gates_on=gates_on,
            gates_off=gates_off,
            disabled_capabilities=frozenset(disabled),
            major_version=major_version,
            overrides=unmanaged,
        )
        command(cluster=cluster, **rest)

    return wrapped


@payload.command()
@directories_argument
@click.option(
    "--gate",
    "gates",
    multiple=True,
    help="Accept this feature gate, although neither the release nor the payload has it.",
)
@output_option
def lint(directories: tuple[Path, ...], gates: tuple[str, ...], output: Output) -> None:
    """Find faults in the payload in DIR.

    Each combination of cluster profile and feature set is checked. The exit code is 0 if there is
    no fault, 1 if there is one, 2 if a file cannot be read.
    """
    reading = read_payload(directories)
    findings = with_lines(lint_payload(reading, gates=gates), directories)
    show(
        lint_view(reading.payload, findings),
        output,
        lambda: payload_text.lint_text(reading.payload, findings),
    )
    sys.exit(EXIT_CANNOT if reading.problems else bool(findings))


@payload.command()
@click.argument(
    "directories",
    metavar="[DIR...]",
    nargs=-1,
    type=click.Path(path_type=Path),
    callback=_payload_directories,
)
@click.argument("what", metavar="MANIFEST|KIND/NAME")
@observed_options
@output_option
def why(
    directories: tuple[Path, ...],
    what: str,
    cluster: DescribedCluster,
    output: Output,
) -> None:
    """Show whether a cluster includes a manifest, and the result of each of the nine filters.

    Without DIR, MANIFEST is the path of a file. Instead of KIND/NAME you can write
    KIND/NAMESPACE/NAME, and KIND.GROUP instead of KIND. The exit code is 0 if the manifest, or one
    of several, is included; 1 if not; 2 if it cannot be read or found.
    """
    if not directories:
        directories, what = (Path(what).parent,), Path(what).name
    loaded = _load(directories, cluster.profile)
    observed = cluster.observed(loaded)
    explanations = explain_all(loaded, what, observed)
    if not explanations:
        near = suggestions(loaded, what)
        hint = f"did you mean {', or '.join(near)}?" if near else "see `payload graph` for all"
        raise CommandFailed(f"no manifest {what} in {', '.join(map(str, directories))}; {hint}")
    show(
        why_view(explanations, observed),
        output,
        lambda: payload_text.why_text(explanations, observed),
    )
    sys.exit(all(explanation.excluded_by for explanation in explanations))


@payload.command()
@directories_argument
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default=Mode.UPDATING.value,
    show_default=True,
    help="The state of the cluster: new, updating or settled.",
)
@observed_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml", "dot", "svg"]),
    default="table",
    show_default=True,
    help="The format of the output; dot and svg draw a graph.",
)
def graph(
    directories: tuple[Path, ...],
    mode: str,
    cluster: DescribedCluster,
    output: Output | Literal["dot", "svg"],
) -> None:
    """Show the order in which the included manifests in DIR are applied."""
    loaded = _load(directories, cluster.profile)
    observed = cluster.observed(loaded)
    order = build_graph(included(loaded.manifests, observed), Mode(mode))
    title = f"{mode}: profile {observed.profile}, feature set {observed.feature_set}"
    match output:
        case "dot":
            click.echo(to_dot(order, title), nl=False)
        case "svg":
            click.echo(to_svg(order, title), nl=False)
        case _:
            show(
                graph_view(order, observed),
                output,
                lambda: payload_text.graph_text(order, title, len(loaded.manifests)),
            )


@payload.command(name="seal")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def seal_(directory: Path) -> None:
    """Mark the release in DIR as complete: write the hashes of its files into SHA256SUMS.

    The cluster version operator applies a release only if it has this file and every hash matches.
    Seal a release after its last change. When you copy a release, copy SHA256SUMS last.
    """
    with errors_in_one_line(PayloadError, OSError):
        count = seal(directory)
    click.echo(f"{directory / SUMS}: {count} files")


def _load(directories: Sequence[Path], profile: str) -> Payload:
    reading = read_payload(directories, profile=profile)
    for problem in reading.problems:
        CommandFailed(str(problem)).show()
    if reading.problems:
        sys.exit(EXIT_CANNOT)
    return reading.payload


def _unmanaged(value: str) -> ComponentOverride:
    override = parse_override(value)
    if override is None:
        raise click.BadParameter(f"{value!r} is not KIND[.GROUP]/[NAMESPACE/]NAME")
    return override
