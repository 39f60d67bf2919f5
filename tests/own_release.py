"""The cluster version operator from its own Deployment on `this-machine`, with its own releases."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.operators.cluster_version.version.releases import Cluster

from quarterdeck.delivery.declaration import Declaration
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.infrastructure import ensure_infrastructure
from quarterdeck.localcluster.releases import (
    apply_as_operator,
    bootstrap_manifests,
    payload_operators,
    write_releases,
)
from quarterdeck.testing.waiting import eventually

NAMESPACE = "openshift-cluster-version"
NAME = "cluster-version-operator"


@contextmanager
def own_release(
    plane: ControlPlane, releases: Path, names: Iterable[str] = ()
) -> Iterator[Cluster]:
    """The operator and the releases of these operators, or of all; it is taken away again."""
    wanted = set(names)
    operators = [one for one in payload_operators() if not wanted or one.name in wanted]
    write_releases(releases, operators)
    ensure_infrastructure(plane)
    own = Cluster(plane, NAMESPACE)
    # A real payload of others, applied by a test before this, has a Deployment of this name with
    # another selector, which cannot be changed.
    own.kubectl("delete", "deployment", NAME, "--ignore-not-found")
    apply_as_operator(plane, bootstrap_manifests(releases))
    try:
        yield own
    finally:
        take_away(own, operators)


def take_away(own: Cluster, operators: Iterable[Declaration]) -> None:
    """Remove the operators; the cluster version operator first, or it brings the others back."""
    others = {one.namespace for one in operators if one.is_in_payload} - {NAMESPACE}
    left_alone = {"group": "apps", "kind": "Deployment", "namespace": NAMESPACE, "name": NAME}
    overrides = [{**left_alone, "unmanaged": True}]
    own.patch("clusterversion", "version", {"spec": {"overrides": overrides}})

    def is_gone() -> bool:
        # It may bring its Deployment back until it has seen the override.
        delete_all(own, NAMESPACE)
        return not own.all("pods") and not own.find("deployment", NAME)

    eventually(is_gone, "no pods of the operator left")
    own.kubectl("delete", "clusterrolebinding", "quarterdeck-cluster-version", "--ignore-not-found")
    # Again: a process that was being killed may have brought one back.
    delete_all(own, NAMESPACE)
    for namespace in others:
        delete_all(own, namespace)

    # A ReplicaSet may have made one more pod while it was deleted.
    def none_left() -> bool:
        return not any(own.all("pods", namespace=namespace) for namespace in others)

    eventually(none_left, "no pods left")


def delete_all(own: Cluster, namespace: str) -> None:
    """Delete the workloads of a namespace at once; the caller looks whether they are gone."""
    there = ("deployments,replicasets,pods", "--all", f"--namespace={namespace}")
    own.plane.kubectl("delete", *there, "--grace-period=0", "--force", "--wait=false")
