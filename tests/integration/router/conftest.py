"""The routers' account, backends on loopback, and a namespace with Services for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.http_backend import http_backend
from tests.router_process import Shop

from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.localcluster.operators import apply
from quarterdeck.operators.ingress.router_account import OBJECTS
from quarterdeck.testing.namespaces import create_namespace


@pytest.fixture(scope="module")
def account(control_plane: ControlPlane) -> Path:
    """The kubeconfig of the routers' account, with the rights that the release gives it."""
    if not control_plane.requests().send("GET", "/api/v1/namespaces/openshift-ingress").ok:
        create_namespace(control_plane.requests(), "openshift-ingress")
    apply(control_plane, OBJECTS)
    return control_plane.kubeconfig_for_service_account("openshift-ingress", "router")


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    with http_backend("one") as one, http_backend("two") as two:
        yield {"one": one, "two": two}


@pytest.fixture
def shop(control_plane: ControlPlane, namespace: str, ports: dict[str, int]) -> Shop:
    return Shop(control_plane, namespace, ports)
