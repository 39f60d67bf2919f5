"""`quarterdeck ingress`: what an IngressController means, and what a change of it would do.

`operators.ingress` judges; `ingress_text` formats.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.ingress_logs import logs
from quarterdeck.cli.output import CommandFailed, Output, output_option, show
from quarterdeck.terminal import visible

if TYPE_CHECKING:
    from quarterdeck.api.operator_v1 import IngressController

NAMESPACE = "openshift-ingress-operator"
NEEDED_TO_READ = (
    "it takes the right to get ingresscontrollers.operator.openshift.io, and the Deployment, "
    "Services, ConfigMaps and IngressClass of the router"
)


@click.group(cls=CommandGroup)
def ingress() -> None:
    """Explain IngressControllers and their access logs."""


ingress.add_command(logs)


@ingress.command()
@click.argument("name", required=False)
@click.option(
    "-f",
    "--file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Explain the IngressController in this file; - is the standard input.",
)
@click.option(
    "-n",
    "--namespace",
    default=NAMESPACE,
    show_default=True,
    help="The namespace of the IngressController NAME.",
)
@cluster_access
@output_option
def explain(
    name: str | None,
    file: Path | None,
    namespace: str,
    ask: Callable[..., Any],
    output: Output,
) -> None:
    """Show what an IngressController means: environment, haproxy.cfg, a sample access line.

    With NAME it is read from the cluster. With --file it is read from a file, and no cluster is
    asked, so the rules of the API server are not checked. With both, the command shows what the
    file would change in the cluster: the objects, and whether the router's pods are replaced. It
    changes nothing.

    The exit code is 0 if the IngressController is admitted; 1 if it is not; 2 if it cannot be read.

    """
    from quarterdeck.cli.ingress_text import as_text
    from quarterdeck.operators.ingress import inspect

    if name is None and file is None:
        raise CommandFailed("give the NAME of an IngressController, or a --file")
    given = read_controller(file) if file is not None else None
    if name is None:
        assert given is not None  # noqa: S101 - one of the two is given
        found = asyncio.run(inspect.explain(given))
    else:
        found = _of_cluster(ask, namespace, name, given)
    show(msgspec.to_builtins(found), output, lambda: as_text(found))
    sys.exit(0 if found.admitted else 1)


def _of_cluster(
    ask: Callable[..., Any], namespace: str, name: str, given: "IngressController | None"
) -> Any:
    from quarterdeck.kube import Client, Forbidden, NotFound
    from quarterdeck.operators.ingress import inspect

    if given is not None and given.metadata.name != name:
        raise CommandFailed(
            f"the file has the IngressController {given.metadata.name!r}, not {name!r}; "
            "give the same name twice"
        )

    async def question(client: Client) -> Any:
        live = await inspect.live_objects(client, name)
        controller = given or await inspect.live_controller(client, namespace, name)
        return await inspect.explain(controller, live)

    try:
        return ask(question)
    except NotFound as error:
        remedy = f"all there are: kubectl get ingresscontrollers --namespace {namespace}"
        raise CommandFailed(f"{error.message}; {remedy}") from None
    except Forbidden as error:
        raise CommandFailed(f"{error.message}; {NEEDED_TO_READ}") from None


def read_controller(path: Path) -> "IngressController":
    """The only IngressController in a file; other objects in it are ignored.

    Standard error names the fields that do not exist.
    """
    from quarterdeck.api.definition import root_schema
    from quarterdeck.api.operator_v1 import INGRESS_CONTROLLERS, IngressController
    from quarterdeck.api.unknown_fields import unknown_fields
    from quarterdeck.strict_yaml import Refusal, decode_yaml

    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text()
    except OSError as error:
        raise CommandFailed(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{path}: {error}") from None
    documents = list(decode_yaml(text))
    for one in documents:
        if isinstance(one, Refusal):
            raise CommandFailed(f"{path}:{one.line}: {one.message}; {one.remedy}")
    found = [
        one.value
        for one in documents
        if not isinstance(one, Refusal)
        and isinstance(one.value, dict)
        and one.value.get("kind") == INGRESS_CONTROLLERS.kind
        and one.value.get("apiVersion") == INGRESS_CONTROLLERS.api_version
    ]
    if len(found) != 1:
        kind = f"{INGRESS_CONTROLLERS.kind} of {INGRESS_CONTROLLERS.api_version}"
        raise CommandFailed(f"{path} has {len(found)} objects {kind}; give a file with one")
    for told in unknown_fields(found[0], root_schema(INGRESS_CONTROLLERS)):
        click.echo(f"warning: {visible(told)}", err=True)
    try:
        # Through JSON: a typed object keeps its managedFields as raw JSON.
        return msgspec.json.decode(msgspec.json.encode(found[0]), type=IngressController)
    except msgspec.ValidationError as error:
        raise CommandFailed(f"{path}: {error}") from None
