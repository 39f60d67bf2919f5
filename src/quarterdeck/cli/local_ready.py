"""What `quarterdeck local up` says at its end: what runs in the cluster, and what to do next."""

import click

from quarterdeck.cli.cluster import Cluster, this_program
from quarterdeck.cli.durations import show_duration
from quarterdeck.cli.local_status import summary
from quarterdeck.localcluster import cluster_version, staleness
from quarterdeck.localcluster.order import Order
from quarterdeck.localcluster.releases import NEXT
from quarterdeck.localcluster.sample import sample_log
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.status import Status


def show_ready(status: Status, order: Order, cluster: Cluster) -> None:
    """Tell of the cluster, and of each part that was asked for."""
    click.echo(summary(status, "ready", cluster))
    _show_sample(order)
    _show_cluster_version(order, cluster)
    _show_staleness(order, cluster)


def _show_sample(order: Order) -> None:
    if order.sample:
        click.echo("\nThe sample operator, two replicas as processes of this machine:")
        log = sample_log(Layout(order.state), order.binaries.kubectl)
        click.echo("".join(f"  {line}\n" for line in log.splitlines()), nl=False)


def _show_cluster_version(order: Order, cluster: Cluster) -> None:
    if order.cluster_version:
        where = (f"--namespace={cluster_version.NAMESPACE}", cluster_version.DEPLOYMENT)
        kubeconfig = f"--kubeconfig={Layout(order.state).kubeconfig}"
        click.echo(
            "\nThe cluster version operator. Its log, and how to see more in it "
            "(Normal, Debug, Trace, TraceAll):"
        )
        click.echo(f"  {cluster.command('kubectl', 'logs', '--follow', *where)}")
        click.echo(f"  {this_program()} log-level set Debug {kubeconfig}")
    if order.payload:
        _show_releases(cluster)


def _show_releases(cluster: Cluster) -> None:
    update = f'{{"spec":{{"desiredUpdate":{{"version":"{NEXT}"}}}}}}'
    patch = ("patch", "clusterversion", "version", "--type=merge", f"--patch={update}")
    click.echo("\nWhat is installed, and how to update it:")
    click.echo(f"  {cluster.command('kubectl', 'get', 'clusterversion,clusteroperators')}")
    click.echo(f"  {cluster.command('kubectl', *patch)}")


def _show_staleness(order: Order, cluster: Cluster) -> None:
    if order.staleness:
        seconds = staleness.INTERVAL.total_seconds()
        asked, unknown = show_duration(seconds), show_duration(2 * seconds)
        click.echo(
            f"\nThe staleness checker, a static pod: a cluster operator that is silent for {asked} "
            f"is asked for a sign of life,\nand its conditions become Unknown after {unknown} "
            "(elsewhere 10m and 20m). Its log:"
        )
        where = (f"--namespace={staleness.NAMESPACE}", staleness.POD)
        click.echo(f"  {cluster.command('kubectl', 'logs', *where)}")
