"""The cluster version operator with a releases directory, as a process of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.operators.cluster_version.version.releases import Cluster, Releases

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.operator_process import OperatorProcess, OwnOperators, StartOperator


@pytest.fixture
def releases(tmp_path: Path) -> Releases:
    """An empty releases directory."""
    return Releases(tmp_path / "releases")


@pytest.fixture
def cluster(
    control_plane: ControlPlane, crds: list[str], namespace: str, clean_cluster: None
) -> Iterator[Cluster]:
    """A cluster without a ClusterVersion, and a namespace for a release's objects."""
    yield Cluster(control_plane, namespace)
    events = ("events.events.k8s.io", "-n", "default", "--all")
    control_plane.kubectl("delete", *events, "--wait=false")


@pytest.fixture
def run_cvo(
    account: Path, cluster: Cluster, releases: Releases, own_operators: OwnOperators
) -> StartOperator:
    """Starts the operator on the releases directory."""
    options = (f"--releases={releases.root}", "--releases-interval=1s")
    start = own_operators(cluster.plane, "cluster-version", *options, account=account)

    def start_version(version: str = "1.0.0", *options: str) -> OperatorProcess:
        return start(f"--release-version={version}", *options)

    return start_version
