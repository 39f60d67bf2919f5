"""The final output of `quarterdeck local up`: what runs in the cluster, and what to do next."""

import textwrap
from collections.abc import Mapping

import click

from quarterdeck.cli.cluster import COLUMNS, LocalCluster, pasteable, this_program
from quarterdeck.cli.local_status import summary
from quarterdeck.delivery.declaration import Declaration, Hint
from quarterdeck.localcluster.access import access_to
from quarterdeck.localcluster.installation import operators_of
from quarterdeck.localcluster.local_objects import local_ports
from quarterdeck.localcluster.operators import log_target, replicas
from quarterdeck.localcluster.order import Contents
from quarterdeck.localcluster.releases import NEXT
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.status import ClusterStatus


def show_ready(
    status: ClusterStatus, state: str, contents: Contents, cluster: LocalCluster
) -> None:
    """Print the cluster's summary, and each requested operator."""
    click.echo(summary(status, state, cluster))
    for declared in operators_of(contents):
        _show_operator(declared, status, cluster)
    if contents.payload:
        _show_releases(cluster)


def _show_operator(declared: Declaration, status: ClusterStatus, cluster: LocalCluster) -> None:
    """Print an operator's description, replicas, log command and hints."""
    layout = Layout(cluster.state)
    if declared.local.show_replicas:
        click.echo(f"\n{introduction(declared, ':')}")
        for one in replicas(declared, access_to(layout, status)):
            click.echo(f"  {one.name}  {'leading' if one.leads else 'standing by'}")
        click.echo("Its log:")
    else:
        click.echo(f"\n{introduction(declared, '. Its log:')}")
    logs = cluster.words("kubectl", "logs", "--follow", *log_target(declared))
    click.echo(pasteable(logs, indent=2))
    ports = local_ports(layout, declared)
    for hint in declared.local.hints:
        click.echo(hint.text)
        click.echo(pasteable(hint_words(hint, ports, cluster), indent=2))


def hint_words(hint: Hint, ports: Mapping[str, int], cluster: LocalCluster) -> list[str]:
    """The words of a hint's command for this cluster."""
    arguments = hint.with_ports(ports)
    match hint.program:
        case "quarterdeck":
            kubeconfig = Layout(cluster.state).kubeconfig
            return [this_program(), *arguments, f"--kubeconfig={kubeconfig}"]
        case "kubectl":
            return cluster.words("kubectl", *arguments)
        case other:
            return [other, *arguments]


def introduction(declared: Declaration, end: str) -> str:
    """The operator's title and text, in lines that fit a terminal."""
    lines = f"{declared.title}{declared.local.text}{end}".splitlines()
    return "\n".join(textwrap.fill(line, COLUMNS) for line in lines)


def _show_releases(cluster: LocalCluster) -> None:
    update = f'{{"spec":{{"desiredUpdate":{{"version":"{NEXT}"}}}}}}'
    patch = ("patch", "clusterversion", "version", "--type=merge", f"--patch={update}")
    click.echo("\nWhat is installed, and how to update it:")
    get = cluster.words("kubectl", "get", "clusterversion,clusteroperators")
    for words in (get, cluster.words("kubectl", *patch)):
        click.echo(pasteable(words, indent=2))
