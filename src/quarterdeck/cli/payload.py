"""`quarterdeck payload`: check a payload, say why a manifest is skipped, show the order.

Everything is offline. The decisions are in `operators.cluster_version.payload`; here they are
asked for and shown.
"""

import functools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from quarterdeck.api.config_v1 import ComponentOverride
from quarterdeck.cli import payload_text
from quarterdeck.cli.output import CANNOT, CommandFailed, Output, output_option, show
from quarterdeck.operators.cluster_version.payload.explain import (
    explain,
    find_manifests,
    suggestions,
)
from quarterdeck.operators.cluster_version.payload.filters import included
from quarterdeck.operators.cluster_version.payload.gates import enabled_gates
from quarterdeck.operators.cluster_version.payload.graph import Mode, build_graph
from quarterdeck.operators.cluster_version.payload.lint import lint as lint_payload
from quarterdeck.operators.cluster_version.payload.load import read_payload
from quarterdeck.operators.cluster_version.payload.locate import with_lines
from quarterdeck.operators.cluster_version.payload.model import Payload
from quarterdeck.operators.cluster_version.payload.observed import (
    CAPABILITIES,
    FEATURE_SETS,
    PROFILES,
    SELF_MANAGED,
    Observed,
)
from quarterdeck.operators.cluster_version.payload.picture import to_dot, to_svg
from quarterdeck.operators.cluster_version.payload.views import graph_view, lint_view, why_view

directories_argument = click.argument(
    "directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)


@click.group()
def payload() -> None:
    """Check a release payload, without a cluster.

    A DIR holds manifests, or one directory with manifests for each component. Several DIRs are
    looked at together, as one payload.
    """


def observed_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say on which cluster; the command gets them as one function.

    It is a function because gates depend on the payload, which the command has to load first.
    """

    @click.option(
        "--profile",
        default=SELF_MANAGED,
        show_default=True,
        help=f"The cluster's profile, such as {', '.join(PROFILES[1:])}.",
    )
    @click.option(
        "--feature-set",
        type=click.Choice(FEATURE_SETS),
        default=FEATURE_SETS[0],
        show_default=True,
        help="The cluster's feature set.",
    )
    @click.option("--gate", "gates_on", multiple=True, help="A feature gate that is on.")
    @click.option("--no-gate", "gates_off", multiple=True, help="A feature gate that is off.")
    @click.option(
        "--no-capability",
        "disabled",
        multiple=True,
        type=click.Choice(sorted(CAPABILITIES)),
        metavar="NAME",
        help="A capability that is disabled; all others are enabled.",
    )
    @click.option("--cluster-id", default="", help="What exclude annotations call the cluster.")
    @click.option("--major-version", type=int, help="The release's major version.")
    @click.option(
        "--unmanaged",
        multiple=True,
        metavar="KIND[.GROUP]/[NAMESPACE/]NAME",
        callback=lambda _ctx, _param, values: tuple(_override(value) for value in values),
        help="An object that ClusterVersion.spec.overrides says is not managed.",
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
        def observe(payload: Payload) -> Observed:
            return Observed(
                profile=profile,
                cluster_id=cluster_id,
                feature_set=feature_set,
                enabled_gates=enabled_gates(
                    payload, profile, feature_set, on=gates_on, off=gates_off
                ),
                enabled_capabilities=CAPABILITIES - set(disabled),
                major_version=major_version,
                overrides=unmanaged,
            )

        command(observe=observe, profile=profile, **rest)

    return wrapped


@payload.command()
@directories_argument
@click.option("--gate", "gates", multiple=True, help="A feature gate that is known elsewhere.")
@output_option
def lint(directories: tuple[Path, ...], gates: tuple[str, ...], output: Output) -> None:
    """Find what is wrong with the payload in DIR.

    Looks at every combination of profile and feature set. Exits with 0 if nothing is found, 1 if
    something is, 2 if files cannot be read.
    """
    reading = read_payload(directories)
    findings = with_lines(lint_payload(reading, gates=gates), directories)
    show(
        lint_view(reading.payload, findings),
        output,
        lambda: payload_text.lint_text(reading.payload, findings),
    )
    sys.exit(CANNOT if reading.problems else bool(findings))


@payload.command()
@click.argument("directories", metavar="[DIR...]", nargs=-1, type=click.Path(path_type=Path))
@click.argument("what", metavar="MANIFEST|KIND/NAME")
@observed_options
@output_option
def why(
    directories: tuple[Path, ...],
    what: str,
    profile: str,
    observe: Callable[[Payload], Observed],
    output: Output,
) -> None:
    """Say whether a manifest counts on a cluster, and what each of the nine filters says.

    Without DIR, the MANIFEST is the path of a file. KIND/NAME may be KIND/NAMESPACE/NAME, and the
    kind may have its group. Exits with 0 if the manifest (or one of several) counts, 1 if not, 2
    if it cannot be read or found.
    """
    if not directories:
        directories, what = (Path(what).parent,), Path(what).name
    loaded = _load(directories, profile)
    manifests = find_manifests(loaded, what)
    if not manifests:
        near = suggestions(loaded, what)
        hint = f"did you mean {', or '.join(near)}?" if near else "see `payload graph` for all"
        raise CommandFailed(f"no manifest {what} in {', '.join(map(str, directories))}; {hint}")
    observed = observe(loaded)
    explanations = [explain(manifest, observed) for manifest in manifests]
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
    help="What the cluster is going through.",
)
@observed_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml", "dot", "svg"]),
    default="table",
    show_default=True,
    help="Text for people, data for programs, or a picture.",
)
def graph(
    directories: tuple[Path, ...],
    mode: str,
    profile: str,
    observe: Callable[[Payload], Observed],
    output: Output | Literal["dot", "svg"],
) -> None:
    """Show in which order the manifests in DIR that count are applied."""
    loaded = _load(directories, profile)
    observed = observe(loaded)
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


def _load(directories: Sequence[Path], profile: str) -> Payload:
    reading = read_payload(directories, profile=profile)
    for problem in reading.problems:
        CommandFailed(str(problem)).show()
    if reading.problems:
        sys.exit(CANNOT)
    return reading.payload


def _override(value: str) -> ComponentOverride:
    kind, *rest = value.split("/")
    if not kind or len(rest) not in (1, 2) or not all(rest):
        raise click.BadParameter(f"{value!r} is not KIND[.GROUP]/[NAMESPACE/]NAME")
    kind, _, group = kind.partition(".")
    namespace = rest[0] if len(rest) == 2 else ""
    return ComponentOverride(
        group=group, kind=kind, namespace=namespace, name=rest[-1], unmanaged=True
    )
