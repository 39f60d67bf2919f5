"""`quarterdeck ingress logs`: the access lines of all pods of an IngressController."""

import asyncio
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import click
import msgspec

from quarterdeck.cli.access import cluster_access
from quarterdeck.cli.output import CommandFailed
from quarterdeck.terminal import visible

if TYPE_CHECKING:
    from quarterdeck.kube import Client

_NAMESPACE = "openshift-ingress"
_LABEL = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
_SIDECAR = "logs"
_PAUSE = 1.0
"""Seconds between two looks with --follow."""


@click.command()
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until interrupted.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["columns", "json", "raw"]),
    default="columns",
    show_default=True,
    help="Columns for people, an object for each line, or the lines as they are.",
)
@cluster_access
def logs(
    name: str, follow: bool, output: Literal["columns", "json", "raw"], ask: Callable[..., Any]
) -> None:
    """Show the access lines of all pods of the IngressController NAME, in the order of time.

    A line in HAProxy's default format is shown in columns; a line in a format of your own is shown
    as it is.
    """

    async def question(client: "Client") -> None:
        seen: dict[str, str] = {}
        while True:
            found = await new_lines(client, name, seen)
            for line in found:
                click.echo(shown(line, output))
            sys.stdout.flush()
            if not follow:
                return
            await asyncio.sleep(_PAUSE)

    try:
        ask(question)
    except KeyboardInterrupt:
        sys.exit(130)


async def new_lines(client: "Client", name: str, seen: dict[str, str]) -> list[str]:
    """The lines of all pods since the last look, by time; `seen` has the last time of each pod."""
    from quarterdeck.api.meta import PODS
    from quarterdeck.kube import NotFound

    pods = (await client.list(PODS, _NAMESPACE, label_selector=f"{_LABEL}={name}")).items
    if not pods and not seen:
        raise CommandFailed(
            f"the IngressController {name!r} has no pods in {_NAMESPACE}; all there are: "
            "kubectl get ingresscontrollers --all-namespaces"
        )
    logging = [pod for pod in pods if _has_sidecar(pod)]
    if not logging and not seen:
        raise CommandFailed(
            f"the pods of {name!r} have no container {_SIDECAR!r}: its access logs do not go to "
            "a sidecar; set spec.logging.access.destination.type to Container"
        )
    found: list[tuple[str, str]] = []
    for pod in logging:
        pod_name = pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{_NAMESPACE}/pods/{pod_name}/log"
        query = f"container={_SIDECAR}&timestamps=true"
        if last := seen.get(pod_name):
            query += f"&sinceTime={quote(last[:19] + 'Z')}"
        try:
            text = (await client.raw(f"{path}?{query}")).decode(errors="replace")
        except NotFound:
            continue
        stamped = [tuple(line.split(" ", 1)) for line in text.splitlines() if " " in line]
        fresh = [(when, line) for when, line in stamped if when > seen.get(pod_name, "")]
        if fresh:
            seen[pod_name] = fresh[-1][0]
        found += fresh
    return [line for _, line in sorted(found)]


def shown(line: str, output: Literal["columns", "json", "raw"]) -> str:
    """A line as it is printed."""
    from quarterdeck.haproxy.access_line import parse_access_line

    parsed = None if output == "raw" else parse_access_line(line)
    if output == "json":
        fields: object = parsed if parsed is not None else {"line": line}
        return msgspec.json.encode(fields).decode()
    if parsed is None:
        return visible(line)
    columns: Iterable[str] = (
        parsed.time,
        f"{parsed.client:<21}",
        f"{parsed.status:>3}",
        f"{parsed.bytes:>8}",
        f"{parsed.milliseconds:>6} ms",
        f"{parsed.backend}/{parsed.server}",
        *([parsed.captures] if parsed.captures else []),
        parsed.request,
    )
    return visible("  ".join(columns))


def _has_sidecar(pod: dict[str, Any]) -> bool:
    containers = (pod.get("spec") or {}).get("containers") or ()
    return any(one.get("name") == _SIDECAR for one in containers)
