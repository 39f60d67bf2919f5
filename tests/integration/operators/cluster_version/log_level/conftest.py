"""The objects that decide about the log level, and the operator that looks at them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.places import DEPLOY

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.log_level import EVENTS, LogLevelObjects
from quarterdeck.testing.operator_process import OwnOperators, StartOperator

DELIVERED = DEPLOY / "cluster-version"
NAMESPACE = "openshift-cluster-version"


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
def run_cvo(
    control_plane: ControlPlane, account: Path, own_operators: OwnOperators
) -> StartOperator:
    """Starts the cluster version operator."""
    return own_operators(control_plane, "cluster-version", account=account)
