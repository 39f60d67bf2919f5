"""A cluster for metal3, and its operators as processes under their own accounts."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from tests.integration.operators.baremetal.metal import Metal

from quarterdeck.api.metal3_v1alpha1 import BARE_METAL_HOSTS, PROVISIONINGS
from quarterdeck.localcluster import ControlPlane
from quarterdeck.metal3.names import MACHINE_API_OWNS
from quarterdeck.testing.fault_proxy import FaultProxy
from quarterdeck.testing.kinds import install_own_kinds
from quarterdeck.testing.operator_process import (
    OperatorProcess,
    OwnOperators,
    StartOperator,
    own_account,
)

B = "--metal3-build=B"
Proxied = Callable[[str], tuple[FaultProxy, str]]
"""A proxy for an operator's account, and the option by which the operator uses it."""


@pytest.fixture
def metal(control_plane: ControlPlane, crds: list[str], clean_cluster: None) -> Iterator[Metal]:
    """A cluster with what a release brings, without a platform and a Provisioning."""
    metal = Metal(control_plane)
    metal.deliver()
    yield metal
    metal.clean_up()


@pytest.fixture
def without_kinds(control_plane: ControlPlane, crds: list[str]) -> Iterator[None]:
    """Provisionings and BareMetalHosts are no kinds yet: a release brings them."""
    names = [PROVISIONINGS.crd_name, BARE_METAL_HOSTS.crd_name]
    control_plane.kubectl("delete", "customresourcedefinitions", *names)
    yield
    install_own_kinds(control_plane)
    # It knows the new kinds at once; see `quarterdeck.testing.kinds`.
    control_plane.restart("kube-controller-manager")


@pytest.fixture
def run_baremetal(metal: Metal, own_operators: OwnOperators) -> StartOperator:
    """Starts the baremetal operator."""
    return own_operators(metal.plane, "baremetal")


@pytest.fixture
def run_machine_api(metal: Metal, own_operators: OwnOperators) -> StartOperator:
    """Starts the machine API operator."""
    return own_operators(metal.plane, "machine-api")


@pytest.fixture
def managed(metal: Metal, run_machine_api: StartOperator) -> OperatorProcess:
    """metal3, managed by a machine API operator that runs."""
    metal.set_platform("BareMetal")
    metal.provision()
    operator = run_machine_api(B)
    metal.wait_running("machine-api")
    assert metal.annotations() == [MACHINE_API_OWNS]
    return operator


@pytest.fixture
def proxied(metal: Metal, kubeconfig: Path, tmp_path: Path) -> Iterator[Proxied]:
    """Puts a proxy between an operator and the API server."""
    with ExitStack() as stack:

        def make(operator: str) -> tuple[FaultProxy, str]:
            account = yaml.safe_load(own_account(metal.plane, operator).read_text())
            (token,) = (one["user"]["token"] for one in account["users"])
            proxy = stack.enter_context(FaultProxy(kubeconfig))
            path = proxy.write_kubeconfig(tmp_path / f"proxied-{operator}", token)
            return proxy, f"--kubeconfig={path}"

        yield make
