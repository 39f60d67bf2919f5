"""Formats the status of a local cluster as text, as data, and as an exit code. Pure."""

import shlex
import textwrap
from datetime import UTC, datetime
from typing import Any

import click

from quarterdeck import __version__
from quarterdeck.cli.cluster import COLUMNS, LocalCluster, pasteable
from quarterdeck.cli.output import table
from quarterdeck.localcluster.binaries import ETCD_VERSION, KUBERNETES_VERSION, KWOK_VERSION
from quarterdeck.localcluster.real_nodes.addresses import REGISTRY
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.status import ClusterStatus

TRY = (
    ("what runs in it", "get nodes,deployments,pods --all-namespaces"),
    ("what the fields of a resource mean", "explain clusterversionoperator.spec"),
    (
        "pods on the simulated node",
        "create deployment web --image=example.test/web --replicas=3",
    ),
)
"""kubectl commands for a new user, and what they show."""

_VERSIONS = {
    "etcd": ETCD_VERSION,
    "kwok": KWOK_VERSION,
    "this-machine": __version__,
    "host-access": __version__,
    "registry": "-",  # the distribution's own
}


def exit_code(status: ClusterStatus | None) -> int:
    """0 if all components run, 1 if one does not, 3 if the cluster does not run."""
    if status is None:
        return 3
    return 0 if status.phase == "ready" else 1


def as_data(
    name: str, layout: Layout, status: ClusterStatus | None, last: ClusterStatus | None = None
) -> dict[str, Any]:
    """The status for programs; `last` is the status that an ended supervisor has left."""
    data: dict[str, Any] = {
        "name": name,
        "state": status.phase if status else "stopped",
        "stateDirectory": str(layout.root),
        "kubernetes": KUBERNETES_VERSION,
    }
    if status is None:
        return data | ({"lastError": last.error} if last and last.error else {})
    return data | {
        "url": status.url,
        "kubeconfig": status.kubeconfig,
        "since": datetime.fromtimestamp(status.since, UTC).isoformat(timespec="seconds"),
        **({"registry": status.registry} if status.registry else {}),
        **({"auditLog": status.audit_log} if status.audit_log else {}),
        "supervisor": {"pid": status.supervisor.pid, "foreground": status.foreground},
        "components": [
            {
                "name": one.name,
                "version": version_of(one.name),
                "state": one.state,
                "pid": one.pid,
                "restarts": one.restarts,
                "log": one.log,
            }
            for one in status.components
        ],
    }


def as_text(
    layout: Layout,
    status: ClusterStatus | None,
    cluster: LocalCluster,
    last: ClusterStatus | None = None,
    *,
    has_kubectl: bool = True,
) -> str:
    """The status for people; `has_kubectl` is whether a kubectl is on the path.

    The logs have one line for all, because the paths would not fit into the table.
    """
    if status is None:
        where = f"; its state is in {layout.root}" if layout.root.exists() else ""
        why = f"\nthe last start failed: {last.error}" if last and last.error else ""
        return f"not running{where}{why}\nstart it with: {cluster.command('up')}"
    components = table(
        ["COMPONENT", "VERSION", "STATE", "PID", "RESTARTS"],
        [
            [
                one.name,
                version_of(one.name),
                _coloured(one.state),
                str(one.pid or "-"),
                str(one.restarts),
            ]
            for one in status.components
        ],
    )
    lines = [
        f"{_coloured(status.phase)}{f' ({status.step})' if status.step else ''}: {status.url}",
        f"state       {layout.root}",
        f"logs        {layout.log_of('COMPONENT')}",
        *([f"audit log   {status.audit_log}"] if status.audit_log else []),
        f"supervisor  pid {status.supervisor.pid}",
        *_to_use("to use it", status),
    ]
    if not has_kubectl:
        lines.append(f"kubectl     {cluster.command('kubectl')}")
    return "\n".join([*lines, "", components])


def summary(status: ClusterStatus, state: str, cluster: LocalCluster) -> str:
    """What runs, its address, and three commands to try."""
    lines = [
        f"Kubernetes {KUBERNETES_VERSION} is {state} at {status.url}",
        *_wrapped("  it runs     ", ", ".join(one.name for one in status.components)),
        f"  kubeconfig  {status.kubeconfig}",
        *_to_use("  to use it", status),
        f"  to stop it  {cluster.command('down')}",
        *_registry(status, Layout(cluster.state)),
        "",
        "Try:",
    ]
    # Beside real nodes the cluster is empty, and the simulated node has a taint.
    for what, words in TRY[:1] if status.registry else TRY:
        command = cluster.words("kubectl", *words.split())
        lines += [f"  # {what}", pasteable(command, indent=2)]
    return "\n".join(lines)


def _registry(status: ClusterStatus, layout: Layout) -> list[str]:
    """Where images are pushed to and pulled from, beside real nodes."""
    if not status.registry:
        return []
    return [
        f"  push to     {status.registry} (authority: {layout.pki / 'ca.crt'})",
        f"  pull from   {REGISTRY}",
    ]


def version_of(component: str) -> str:
    """The pinned version of a component."""
    return _VERSIONS.get(component, KUBERNETES_VERSION)


def _to_use(label: str, status: ClusterStatus) -> list[str]:
    """The command that points kubectl to the cluster; on a line of its own if it is long."""
    command = f"export KUBECONFIG={shlex.quote(status.kubeconfig)}"
    line = f"{label}   {command}"
    return [line] if len(line) <= COLUMNS else [label, f"  {command}"]


def _wrapped(label: str, text: str) -> list[str]:
    """The text beside its label, on several lines if one would be too long."""
    return textwrap.wrap(
        text, COLUMNS, initial_indent=label, subsequent_indent=" " * len(label)
    ) or [label]


def _coloured(state: str) -> str:
    good = state in ("ready", "running")
    return click.style(state, fg="green" if good else "yellow")
