"""A management cluster, and the hosted operator in a process of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.operators.hosted.management import HC, Management

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.operator_process import OwnOperators, StartOperator, own_account


@pytest.fixture(scope="module")
def account(control_plane: ControlPlane, crds: list[str]) -> Path:
    """The kubeconfig of the operator's own account, which stays: its namespace is slow to go."""
    return own_account(control_plane, "hosted")


@pytest.fixture
def management(
    control_plane: ControlPlane, account: Path, namespace: str, clean_cluster: None
) -> Iterator[Management]:
    """A cluster with the gate on, and a namespace with a kubeconfig; the operator does not run."""
    made = Management(control_plane, namespace)
    made.set_gate(on=True)
    made.add_kubeconfig()
    yield made
    # The operator is gone, so nobody else removes its finalizer.
    for cluster in made.objects.list(HC):
        name = cluster["metadata"]["name"]
        made.objects.delete(HC, name)
        if made.objects.find(HC, name):
            made.objects.patch(HC, name, {"metadata": {"finalizers": None}})


@pytest.fixture
def run_hosted(
    control_plane: ControlPlane, account: Path, own_operators: OwnOperators
) -> StartOperator:
    """Starts the hosted operator."""
    # In its own namespace, although it runs elsewhere.
    return own_operators(control_plane, "hosted", "--hosted-releases=", account=account)
