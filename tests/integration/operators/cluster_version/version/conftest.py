"""The cluster version operator with a releases directory, as a process of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.operators.cluster_version.version.releases import Cluster, Releases

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.operator_process import OperatorProcess, StartOperator, operator_processes


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
def run_cvo(cluster: Cluster, releases: Releases, tmp_path: Path) -> Iterator[StartOperator]:
    """Starts the operator on the releases directory; killed after the test."""
    with operator_processes(
        tmp_path,
        "--operator=cluster-version",
        f"--kubeconfig={cluster.plane.kubeconfig}",
        f"--releases={releases.root}",
    ) as start:

        def start_version(version: str = "1.0.0", *options: str) -> OperatorProcess:
            return start(f"--release-version={version}", *options)

        yield start_version
