"""The ingress operator in a process of its own, and its IngressControllers.

The routers' image has a foreign name, so their pods are on the node `simulated`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.operators.ingress.routers import IMAGE, Routers

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.operators import apply
from quarterdeck.operators.ingress.router_account import OBJECTS
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.operator_process import (
    OperatorProcess,
    OwnOperators,
    StartOperator,
    own_account,
)


@pytest.fixture(scope="module")
def account(control_plane: ControlPlane, crds: list[str]) -> Iterator[Path]:
    """The kubeconfig of the operator's own account, which stays: its namespaces are slow to go."""
    kubeconfig = own_account(control_plane, "ingress")
    apply(control_plane, OBJECTS)
    yield kubeconfig
    ApiObjects(control_plane.requests(), "default").delete("clusteroperator", "ingress")


@pytest.fixture
def routers(control_plane: ControlPlane, account: Path) -> Iterator[Routers]:
    """The IngressControllers of the shared control plane; they are gone after the test."""
    made = Routers(control_plane)
    yield made
    made.remove_all()
    assert made.refusals() == []


OPTIONS = (f"--router-image={IMAGE}", "--pods-grace-period=1s", "--min-replicas-grace-period=1s")


@pytest.fixture
def start(
    control_plane: ControlPlane, account: Path, own_operators: OwnOperators, routers: Routers
) -> StartOperator:
    """Starts operators, which are killed after the test."""
    return own_operators(control_plane, "ingress", *OPTIONS, account=account)


@pytest.fixture(scope="module")
def operator(
    control_plane: ControlPlane, account: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """An operator that runs for all tests of a file."""
    operators = OwnOperators(tmp_path_factory.mktemp("ingress"))
    yield operators(control_plane, "ingress", *OPTIONS, account=account)()
    operators.kill()


@pytest.fixture(scope="module")
def real_operator(
    node_agent: ControlPlane, account: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """An operator whose routers run, and route to this machine."""
    operators = OwnOperators(tmp_path_factory.mktemp("ingress"))
    options = ("--external-names", "--loopback-backends", "--router-stop-delay=0s")
    yield operators(node_agent, "ingress", *options, account=account)()
    operators.kill()
