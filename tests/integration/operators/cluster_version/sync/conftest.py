"""What the tests of the payload engine share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.integration.operators.cluster_version.sync.engine import Engine

from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.localcluster import ControlPlane


@pytest.fixture
def engine(control_plane: ControlPlane, crds: list[str], namespace: str) -> Engine:
    """The engine, as a user of this test's own."""
    return Engine(control_plane, namespace)


@pytest.fixture
async def admin(kubeconfig: Path) -> AsyncIterator[Client]:
    """Somebody else."""
    async with Client(load_kubeconfig(kubeconfig)) as client:
        yield client


@pytest.fixture
def tidy(namespace: str, clean_cluster: None) -> None:
    """Cluster-scoped objects of the test are removed; its namespace goes by itself, unwaited."""
