"""The checks of `quarterdeck local up --real-nodes`, and the push to the registry beside them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quarterdeck.cli.cluster import LocalCluster
from quarterdeck.cli.local_operators import operators_in
from quarterdeck.cli.output import CommandFailed, errors_in_one_line

if TYPE_CHECKING:
    from quarterdeck.localcluster.state import Layout
    from quarterdeck.localcluster.status import ClusterStatus


def push_to_nodes(archive: Path, name: str, status: "ClusterStatus", layout: "Layout") -> str:
    """Push an archive under this name to a cluster's registry; the reference that nodes pull."""
    from quarterdeck.cli.release_registry import push_archive
    from quarterdeck.localcluster.certificates import certificate_path
    from quarterdeck.localcluster.real_nodes.addresses import REGISTRY

    if not status.registry:
        raise CommandFailed("the cluster has no real nodes, and so no registry")
    authority = str(certificate_path(layout.pki, "ca"))
    pushed = push_archive(archive, f"{status.registry}/{name}", "", authority)
    return f"{REGISTRY}/{pushed.repository}@{pushed.digest}"


def check_real_nodes(parameters: Mapping[str, Any]) -> None:
    """Refuse real nodes that cannot run here, or with contents of the node this-machine."""
    from quarterdeck.localcluster.errors import LocalClusterError
    from quarterdeck.localcluster.real_nodes.requirements import check_machine

    others = ("payload", "everything", "console", "static_pods", "names")
    if any(parameters.get(name) for name in others) or operators_in(parameters):
        raise CommandFailed(
            "with --real-nodes the cluster is empty, and operators come into it as into any other: "
            "leave out the options that install some"
        )
    with errors_in_one_line(LocalClusterError):
        check_machine()


def check_state(layout: "Layout", wanted: int | None, cluster: LocalCluster) -> None:
    """Refuse the state of a cluster of the other kind: its pods belong to other nodes."""
    has_real_nodes = (layout.root / "real-nodes").exists()
    if layout.etcd_data.exists() and has_real_nodes != bool(wanted):
        kind = "real nodes" if has_real_nodes else "the node this-machine"
        raise CommandFailed(
            f"{layout.root} is of a cluster with {kind}; choose another --name, or remove it with: "
            f"{cluster.command('down', '--purge')}"
        )


def check_nodes(running: "ClusterStatus", wanted: int | None, cluster: LocalCluster) -> None:
    """Refuse to change the number of real nodes of a running cluster."""
    from quarterdeck.localcluster.real_nodes.addresses import node_names

    present = node_names(one.name for one in running.components)
    if len(present) != (wanted or 0) and (wanted or present):
        raise CommandFailed(
            f"the cluster runs with {len(present)} real nodes; to change that, stop it first "
            f"with: {cluster.command('down')}"
        )
