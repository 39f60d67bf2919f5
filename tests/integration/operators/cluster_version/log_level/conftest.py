"""The cluster version operator as users run it, under its own account, and its objects."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.places import DEPLOY

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.log_level import EVENTS, LogLevelObjects
from quarterdeck.testing.operator_process import StartOperator, operator_processes

DELIVERED = DEPLOY / "cluster-version"
NAMESPACE = "openshift-cluster-version"


@pytest.fixture(scope="module")
def account(control_plane: ControlPlane, crds: list[str]) -> Path:
    """The kubeconfig of the operator's own account, which stays: its namespace is slow to go."""
    control_plane.kubectl("apply", "--server-side", f"--filename={DELIVERED / 'rbac.yaml'}")
    return control_plane.kubeconfig_for_service_account(NAMESPACE, "cluster-version-operator")


@pytest.fixture
def objects(
    control_plane: ControlPlane, account: Path, clean_cluster: None
) -> Iterator[LogLevelObjects]:
    """A cluster without FeatureGate and ClusterVersionOperator; the test makes what it needs."""
    objects = LogLevelObjects(control_plane)
    objects.send("DELETE", EVENTS)
    yield objects
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    objects.send("DELETE", leases)


@pytest.fixture
def delivered(objects: LogLevelObjects) -> LogLevelObjects:
    """A cluster with both, as they are delivered."""
    objects.plane.kubectl("create", f"--filename={DELIVERED / 'config.yaml'}")
    return objects


@pytest.fixture
def run_cvo(account: Path, tmp_path: Path) -> Iterator[StartOperator]:
    """Starts the cluster version operator in a process of its own; killed after the test."""
    with operator_processes(
        tmp_path, "--operator=cluster-version", f"--kubeconfig={account}"
    ) as start:
        yield start
