"""`quarterdeck local`: a real Kubernetes control plane on this machine.

Each command imports its modules when it runs, so that the other commands start quickly.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.cluster import LocalCluster, cluster_options
from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.local_operators import UpCommand, changes_in, operators_in
from quarterdeck.cli.local_real_nodes import (
    check_nodes,
    check_real_nodes,
    check_state,
    push_to_nodes,
)
from quarterdeck.cli.output import CommandFailed, Output, errors_in_one_line, output_option, show

if TYPE_CHECKING:
    from quarterdeck.localcluster.binaries import Binaries
    from quarterdeck.localcluster.order import ClusterOrder, Contents
    from quarterdeck.localcluster.state import Layout
    from quarterdeck.localcluster.status import ClusterStatus


class NotRunning(CommandFailed):
    """The cluster that a command needs does not run."""

    exit_code = 3


@click.group(cls=CommandGroup)
def local() -> None:
    """Run a real Kubernetes control plane on this machine."""


@local.command(cls=UpCommand)
@cluster_options
@click.option(
    "--foreground", is_flag=True, help="Stay in the foreground; Ctrl-C stops the cluster."
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="The API server's port on 127.0.0.1.  [default: a free port, the same at each start]",
)
@click.option(
    "--payload",
    is_flag=True,
    help="Let the cluster version operator install all operators, as a release.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Run all operators: --payload, and the operators that run as static pods.",
)
@click.option(
    "--console",
    is_flag=True,
    help="Also run the web console, and print a link that logs in once; with --foreground.",
)
@click.option(
    "--real-nodes",
    type=click.IntRange(1, 9),
    metavar="N",
    help="Run N real nodes with kubelet and containerd instead of this-machine; as root.",
)
@click.option(
    "--audit-log",
    is_flag=True,
    help="Write every request to the API server, without bodies, to logs/audit.log of the state.",
)
@click.option(
    "--static-pods",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    help="A directory of manifests of static pods, which the node this-machine runs.",
)
@click.pass_context
def up(
    ctx: click.Context,
    /,
    *,
    cluster: LocalCluster,
    foreground: bool,
    port: int | None,
    payload: bool,
    everything: bool,
    console: bool,
    audit_log: bool,
    static_pods: Path | None,
    real_nodes: int | None,
    **_of_operators: Any,
) -> None:
    """Start the cluster, and return when it is ready.

    If the cluster runs already, install what the options ask for and the cluster lacks.
    """
    from quarterdeck.localcluster.binaries import BinariesUnavailable
    from quarterdeck.localcluster.errors import LocalClusterError
    from quarterdeck.localcluster.node.sandbox.isolation import (
        Isolation,
        find_isolation,
        proot_warning,
    )
    from quarterdeck.localcluster.order import ClusterOrder, Contents
    from quarterdeck.localcluster.state import prepare
    from quarterdeck.localcluster.status import running_status

    if console and not foreground:
        raise CommandFailed(
            "--console needs --foreground; beside a cluster in the background, start it with: "
            "quarterdeck console --one-time-link"
        )
    if real_nodes is not None:
        check_real_nodes(ctx.params)
    layout = _layout(cluster)
    contents = Contents(
        operators=operators_in(ctx.params),
        payload=payload or everything,
        static_pods=static_pods,
        changes=changes_in(ctx.params),
    )
    with errors_in_one_line(LocalClusterError, BinariesUnavailable, OSError):
        running = running_status(layout)
        if running is not None and running.phase in ("ready", "degraded"):
            _check_port(running, port, cluster)
            _check_audit_log(running, audit_log, cluster)
            check_nodes(running, real_nodes, cluster)
            _install_missing(running, contents, layout, cluster)
            if console:
                click.echo(
                    "\nThe cluster runs already, so its console does not start with it. Start one: "
                    f"quarterdeck console --one-time-link --kubeconfig={running.kubeconfig}"
                )
            return
        # Checked before a build, which takes minutes.
        check_state(layout, real_nodes, cluster)
        prepare(layout)
        if real_nodes is None and find_isolation() is Isolation.PROOT:
            click.echo(proot_warning(), err=True)
        order = ClusterOrder(
            state=layout.root,
            binaries=_binaries(with_real_nodes=real_nodes is not None),
            api_port=port,
            foreground=foreground,
            real_nodes=real_nodes or 0,
            audit=audit_log,
            contents=contents,
        )
        if foreground:
            _run_in_foreground(order, cluster, console=console)
        else:
            _run_in_background(order, cluster)


@local.command()
@cluster_options
@click.option(
    "--purge", is_flag=True, help="Also remove the cluster's state: objects, keys, ports and logs."
)
def down(cluster: LocalCluster, purge: bool) -> None:
    """Stop the cluster, and show which files are left."""
    from quarterdeck.cli.steps import Steps
    from quarterdeck.localcluster import background
    from quarterdeck.localcluster.binaries import BinariesUnavailable, BinarySettings
    from quarterdeck.localcluster.errors import LocalClusterError

    layout = _layout(cluster)
    with errors_in_one_line(LocalClusterError, BinariesUnavailable, OSError):
        with Steps() as step:
            outcome = background.take_down(layout, step)
        click.echo(outcome)
        if purge:
            background.purge(layout)
            click.echo(f"removed  {layout.root}")
        elif layout.root.exists():
            remedy = cluster.command("down", "--purge")
            click.echo(f"left     {layout.root} (the cluster's state; {remedy} removes it)")
        cache = BinarySettings.from_environment(os.environ).cache
        if cache.exists():
            click.echo(f"left     {cache} (the programs; the next start would miss them)")


@local.command()
@cluster_options
@output_option
def status(cluster: LocalCluster, output: Output) -> None:
    """Show which parts of the cluster run, and how to use kubectl with it.

    The exit code is 0 if all parts are healthy, 1 if a part is not, 3 if the cluster does not run.
    """
    from quarterdeck.cli import local_status
    from quarterdeck.localcluster.status import read_status, running_status

    layout = _layout(cluster)
    with errors_in_one_line(OSError):
        running, last = running_status(layout), read_status(layout)
    data = local_status.as_data(cluster.name, layout, running, last)
    has_kubectl = shutil.which("kubectl") is not None
    show(
        data,
        output,
        lambda: local_status.as_text(layout, running, cluster, last, has_kubectl=has_kubectl),
    )
    sys.exit(local_status.exit_code(running))


@local.command(
    context_settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
    }
)
@cluster_options
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(cluster: LocalCluster, arguments: tuple[str, ...]) -> None:
    """Run the cluster's own kubectl; it gets all ARGUMENTS.

    Put the options below before the ARGUMENTS; `help` as an argument shows kubectl's own help.
    """
    from quarterdeck.localcluster.status import kubectl_environment

    layout = _layout(cluster)
    with errors_in_one_line(OSError):
        running = _running(layout, cluster)
        environment = os.environ | kubectl_environment(layout)
        os.execve(running.kubectl, ["kubectl", *arguments], environment)  # noqa: S606


@local.command(name="exec")
@cluster_options
@click.option(
    "--namespace", "-n", default="default", show_default=True, help="The namespace of the pod."
)
@click.option(
    "--container", "-c", default="", help="The container in the pod.  [default: the first]"
)
@click.argument("pod")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(
    cluster: LocalCluster, namespace: str, container: str, pod: str, command: tuple[str, ...]
) -> None:
    """Run COMMAND in a container of POD, on the node this-machine.

    Put `--` before a COMMAND that has options.
    """
    from quarterdeck.localcluster.errors import LocalClusterError
    from quarterdeck.localcluster.node.sandbox.entry import command_inside
    from quarterdeck.localcluster.node.sandbox.lookup import find_entry

    layout = _layout(cluster)
    with errors_in_one_line(LocalClusterError, OSError):
        running = _running(layout, cluster)
        entry = find_entry(layout, running.kubectl, namespace, pod, container)
        words, variables = command_inside(entry, command)
        os.execvpe(words[0], words, variables)  # noqa: S606


@local.command()
@cluster_options
@click.argument("archive", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("image", metavar="NAME[:TAG]")
def push(cluster: LocalCluster, archive: Path, image: str) -> None:
    """Push the image in ARCHIVE to the registry beside real nodes, as NAME.

    The reference that pods can name is printed, by its digest.
    """
    layout = _layout(cluster)
    click.echo(push_to_nodes(archive, image, _running(layout, cluster), layout))


@local.command()
@click.option("--real-nodes", is_flag=True, help="Also the programs of real nodes.")
@click.option("--helm", is_flag=True, help="Also Helm, which the cluster itself does not need.")
def binaries(real_nodes: bool, helm: bool) -> None:
    """Download or build the cluster's programs if they are missing, and print their paths."""
    from quarterdeck.localcluster.binaries import BinariesUnavailable

    with errors_in_one_line(BinariesUnavailable):
        found = _binaries(with_real_nodes=real_nodes, with_helm=helm)
    for program in sorted(found.paths):
        click.echo(found.paths[program])


def _layout(cluster: LocalCluster) -> "Layout":
    """The paths of the cluster; an error if they belong to another user."""
    from quarterdeck.localcluster.errors import LocalClusterError
    from quarterdeck.localcluster.state import Layout, check_owner

    layout = Layout(cluster.state)
    with errors_in_one_line(LocalClusterError):
        check_owner(layout)
    return layout


def _running(layout: "Layout", cluster: LocalCluster) -> "ClusterStatus":
    """The status of the running cluster; NotRunning if it does not run."""
    from quarterdeck.localcluster.status import running_status

    with errors_in_one_line(OSError):
        running = running_status(layout)
    if running is None:
        raise NotRunning(f"the cluster does not run; start it with: {cluster.command('up')}")
    return running


def _binaries(*, with_real_nodes: bool = False, with_helm: bool = False) -> "Binaries":
    from quarterdeck.localcluster.binaries import (
        ALL,
        REAL_NODES,
        BinarySettings,
        ensure_binaries,
    )

    names = [*ALL, *(REAL_NODES if with_real_nodes else ()), *(["helm"] if with_helm else ())]
    return ensure_binaries(BinarySettings.from_environment(os.environ), names)


def _check_port(running: "ClusterStatus", port: int | None, cluster: LocalCluster) -> None:
    if port is not None and not running.url.endswith(f":{port}"):
        raise CommandFailed(
            f"the cluster runs at {running.url}; to move it to port {port}, stop it first with: "
            f"{cluster.command('down')}"
        )


def _check_audit_log(running: "ClusterStatus", wanted: bool, cluster: LocalCluster) -> None:
    if wanted and not running.audit_log:
        raise CommandFailed(
            "the cluster runs without an audit log; to start it with one, stop it first with: "
            f"{cluster.command('down')}"
        )


def _install_missing(
    running: "ClusterStatus", contents: "Contents", layout: "Layout", cluster: LocalCluster
) -> None:
    from quarterdeck.cli.local_ready import show_ready
    from quarterdeck.cli.steps import Steps
    from quarterdeck.localcluster.access import access_to
    from quarterdeck.localcluster.installation import install_missing

    if not running.registry:
        with Steps() as step:
            install_missing(access_to(layout, running), contents, step)
    show_ready(running, "already running", contents, cluster)


def _run_in_background(order: "ClusterOrder", cluster: LocalCluster) -> None:
    from quarterdeck.cli.local_ready import show_ready
    from quarterdeck.cli.steps import Steps
    from quarterdeck.localcluster.background import bring_up

    with Steps() as step:
        status = bring_up(order, step)
    show_ready(status, "ready", order.contents, cluster)


def _run_in_foreground(order: "ClusterOrder", cluster: LocalCluster, *, console: bool) -> None:
    from quarterdeck.cli.local_console import local_console
    from quarterdeck.cli.local_ready import show_ready
    from quarterdeck.cli.steps import Steps
    from quarterdeck.localcluster.supervisor import Supervisor

    with Steps() as step, local_console(_layout(cluster), cluster.name) as beside:

        def ready(status: "ClusterStatus") -> None:
            step.done()
            show_ready(status, "ready", order.contents, cluster)
            if console:
                beside.start(status)
            click.echo("\nCtrl-C stops all of it.")

        Supervisor(order, report=click.echo, progress=step, ready=ready).run()
    click.echo(f"stopped; the state is left in {order.state}")
