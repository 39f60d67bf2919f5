"""`quarterdeck subscription`: the Deployments of a Subscription, approvals, and what is wrong."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.output import (
    CommandFailed,
    Output,
    errors_in_one_line,
    output_option,
    show,
    table,
)
from quarterdeck.terminal import visible

if TYPE_CHECKING:
    from quarterdeck.api.custom_resource import CustomResource
    from quarterdeck.api.meta import TypedObject
    from quarterdeck.api.operators_v1alpha1 import Subscription
    from quarterdeck.kube import Client
    from quarterdeck.operators.subscriptions.inspect import DeploymentDifference, SubscriptionView
    from quarterdeck.operators.subscriptions.render import Rendering

T = TypeVar("T", bound="TypedObject")

_PART = re.compile(r"metadata\.|spec\.template\.spec\.\w*ontainers\[[^]]*\]\.|(\w+\.)*")

file_option = click.option(
    "-f",
    "--filename",
    required=True,
    type=click.Path(path_type=Path),
    help="The file with the Subscription.",
)


@click.group(cls=CommandGroup)
def subscription() -> None:
    """Show what Subscriptions install and configure; approve their updates."""


@subscription.command()
@file_option
@click.option(
    "--catalog",
    required=True,
    type=click.Path(path_type=Path),
    help="The directory of the catalog.",
)
@click.option("--csv", help="The version to render.  [default: the one that is installed first]")
@click.option(
    "--proxy", type=click.Path(path_type=Path), help="The file with the Proxy of the cluster."
)
@click.option("--provenance", is_flag=True, help="Show where each field comes from.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="The format of the Deployments.",
)
def render(
    filename: Path,
    catalog: Path,
    csv: str | None,
    proxy: Path | None,
    provenance: bool,
    output: Output,
) -> None:
    """Print the Deployments that a Subscription gives, without a cluster.

    The exit code is 1 if a part of the config cannot be applied; references to ConfigMaps and
    Secrets are not checked.
    """
    from quarterdeck.api.config_v1 import PROXIES
    from quarterdeck.operators.subscriptions.catalog.files import directory_files
    from quarterdeck.operators.subscriptions.catalog.load import load
    from quarterdeck.operators.subscriptions.config.proxy import proxy_variables
    from quarterdeck.operators.subscriptions.groups import Target
    from quarterdeck.operators.subscriptions.render import CannotRender, chosen_csv, rendered

    wanted = read_subscription(filename)
    variables = proxy_variables(_read(proxy, PROXIES) if proxy else None)
    loaded = load(directory_files(catalog))
    if loaded.errors:
        raise CommandFailed(f"{catalog}: {loaded.errors[0]}")
    namespace = wanted.metadata.namespace or "default"
    target = Target(namespace=namespace, namespaces=(namespace,))
    with errors_in_one_line(CannotRender):
        found = rendered(wanted, chosen_csv(wanted, loaded.catalog, csv), variables, target)
    if provenance:
        data = [
            {"deployment": one.deployment["metadata"]["name"], **msgspec.to_builtins(origin)}
            for one in found.deployments
            for origin in one.origins
        ]
        show(data, "json" if output == "json" else "table", lambda: provenance_text(found))
    else:
        items = [one.deployment for one in found.deployments]
        data_list = {"apiVersion": "v1", "kind": "List", "items": items}
        show(items[0] if len(items) == 1 else data_list, output, str)
    for fault in found.faults:
        CommandFailed(fault).show()
    sys.exit(1 if found.faults else 0)


@subscription.command()
@file_option
@click.option(
    "-n",
    "--namespace",
    default="",
    help="The namespace, if the file has none.  [default: that of the kubeconfig]",
)
@cluster_access
@output_option
def diff(filename: Path, namespace: str, ask: Callable[..., Any], output: Output) -> None:
    """Compare the Deployments of the cluster with what the Subscription in a file gives.

    The version is the installed one. The exit code is 1 if something differs.
    """
    from quarterdeck.operators.subscriptions.inspect import difference
    from quarterdeck.operators.subscriptions.render import CannotRender

    wanted = read_subscription(filename)

    async def compare(client: "Client") -> "list[DeploymentDifference]":
        wanted.metadata.namespace = (
            wanted.metadata.namespace or namespace or client.connection.namespace
        )
        return await difference(client, wanted)

    with errors_in_one_line(CannotRender):
        found = ask(compare)
    show(msgspec.to_builtins(found), output, lambda: difference_text(found))
    sys.exit(1 if any(one.missing or one.fields for one in found) else 0)


@subscription.command(name="list")
@click.option("-n", "--namespace", default="", help="Only this namespace.  [default: all]")
@cluster_access
@output_option
def list_(namespace: str, ask: Callable[..., Any], output: Output) -> None:
    """Show the Subscriptions, what they have installed, and what is wrong with them."""
    from quarterdeck.operators.subscriptions.inspect import views

    found = ask(lambda client: views(client, namespace))
    show(msgspec.to_builtins(found), output, lambda: views_text(found))


@subscription.command()
@click.argument("name")
@click.option(
    "-n", "--namespace", default="", help="The namespace.  [default: that of the kubeconfig]"
)
@cluster_access
@output_option
def approve(name: str, namespace: str, ask: Callable[..., Any], output: Output) -> None:
    """Approve the update that the Subscription NAME waits for."""
    from quarterdeck.operators.subscriptions.inspect import Approval
    from quarterdeck.operators.subscriptions.inspect import approve as approve_plan
    from quarterdeck.operators.subscriptions.render import CannotRender

    async def ask_to_approve(client: "Client") -> Approval:
        return await approve_plan(client, namespace or client.connection.namespace, name)

    with errors_in_one_line(CannotRender):
        found = ask(ask_to_approve)
    done = "was approved already" if found.was_approved else "is approved"
    warning = f"\nwarning: {found.warning}" if found.warning else ""
    show(msgspec.to_builtins(found), output, lambda: f"{found.csv} ({found.plan}) {done}{warning}")


def read_subscription(path: Path) -> "Subscription":
    """The Subscription in a file."""
    from quarterdeck.api.operators_v1alpha1 import SUBSCRIPTIONS

    return _read(path, SUBSCRIPTIONS)


def _read(path: Path, resource: "CustomResource[T]") -> T:
    """The only object in a file; standard error names the fields that do not exist.

    No API server has checked it, so its types are checked here.
    """
    from quarterdeck.api.definition import root_schema
    from quarterdeck.api.nulls import without_nulls
    from quarterdeck.api.type_faults import type_faults
    from quarterdeck.api.unknown_fields import unknown_fields
    from quarterdeck.strict_yaml import Document, Refusal, decode_yaml

    try:
        text = path.read_text()
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{path}: {error}") from None
    documents = [one for one in decode_yaml(text) if isinstance(one, Refusal) or one.value]
    wanted = {"apiVersion": resource.api_version, "kind": resource.kind}
    match documents:
        case [Refusal(line=line, message=message, remedy=remedy)]:
            raise CommandFailed(f"{path}:{line}: {message}; {remedy}")
        case [Document(value=dict() as value)] if wanted.items() <= value.items():
            pass
        case _:
            kind = f"{resource.kind} of {resource.api_version}"
            raise CommandFailed(f"{path}: it has to have one {kind}")
    schema = root_schema(resource)
    if fault := next(type_faults(value, schema), ""):
        raise CommandFailed(f"{path}: {fault}")
    for told in unknown_fields(value, schema):
        click.echo(visible(f"warning: {path}: {told}"), err=True)
    try:
        return msgspec.convert(without_nulls(value), resource.type)
    except msgspec.ValidationError as error:
        raise CommandFailed(f"{path}: {error}") from None


def provenance_text(found: "Rendering") -> str:
    """A table for each part of each Deployment: its fields, and where each comes from."""
    parts: dict[str, list[tuple[str, ...]]] = {}
    for one in found.deployments:
        name = one.deployment["metadata"]["name"]
        for origin in one.origins:
            part, field = _split(origin.field)
            value = "(removed)" if origin.removed else _short(field, origin.value)
            replaced = "" if origin.replaced is None else _short(field, origin.replaced)
            row = (field, origin.source, value, replaced)
            parts.setdefault(f"Deployment {name}: {part}", []).append(row)
    header = ("FIELD", "SOURCE", "VALUE", "REPLACED")
    return "\n\n".join(f"{part}\n{table(header, rows)}" for part, rows in parts.items())


def _split(path: str) -> tuple[str, str]:
    """The part of a Deployment in which a field is, and the rest of its path.

    The parts are the containers, and the fields above them.
    """
    found = _PART.match(path)
    at = found.end() if found else 0
    return path[:at].rstrip("."), path[at:]


def _short(field: str, value: Any) -> str:
    """The value; of an entry whose name is in the field, what else it has."""
    if isinstance(value, dict) and field.startswith(("env[", "volumes[")):
        value = {part: inner for part, inner in value.items() if part != "name"}
        value = value["value"] if value.keys() == {"value"} else value
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def difference_text(found: "list[DeploymentDifference]") -> str:
    """A line for each field that would change."""
    lines = []
    for one in found:
        if one.missing:
            lines.append(f"Deployment {one.deployment} does not exist")
        lines += [f"Deployment {one.deployment}: {field}" for field in one.fields]
    return "\n".join(lines) or "nothing differs"


def views_text(found: "list[SubscriptionView]") -> str:
    """The Subscriptions as a table, and below it in full what is wrong."""
    if not found:
        return "there are no Subscriptions"
    header = ("NAMESPACE", "NAME", "PACKAGE", "CHANNEL", "INSTALLED", "STATE", "PROBLEMS")
    rows = [
        (
            one.namespace,
            one.name,
            one.package,
            one.channel or "-",
            one.installed or "-",
            one.state or "-",
            ", ".join(problem.partition(":")[0] for problem in one.problems) or "-",
        )
        for one in found
    ]
    told = [
        f"{one.namespace}/{one.name}: {' '.join(problem.split())}"
        for one in found
        for problem in one.problems
    ]
    return "\n".join([table(header, rows), *(["", *told] if told else [])])
