"""The platform in the Infrastructure `cluster`: named where nobody has, otherwise left alone."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.infrastructure import ensure_infrastructure
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.operator_process import OwnOperators
from quarterdeck.testing.waiting import eventually

NAMESPACE = "openshift-cluster-version"
USER = f"system:serviceaccount:{NAMESPACE}:cluster-version-operator"
RECONCILED = 'controller_runtime_reconcile_total{controller="platform",result="success"}'

OLDER = {"platform": "BareMetal"}
NEWER = {"platformStatus": {"type": "BareMetal"}}
NONE = {"platform": "None", "platformStatus": {"type": "None"}}

NamePlatform = Callable[[], None]
"""Names the platform `None` if nobody has named one, and returns when it has looked."""


class Platform:
    """The Infrastructure `cluster`."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._objects = ApiObjects(plane.requests(), NAMESPACE)

    def create(self, status: Any) -> None:
        """Create it with a status; without one if that is empty."""
        about = {"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure"}
        self._objects.apply({**about, "metadata": {"name": "cluster"}, "spec": {}})
        if status:
            body = {"status": status}
            self._objects.patch("infrastructure", "cluster", body, subresource="status")

    def now(self) -> Any:
        """It, as it is; None if there is none."""
        return self._objects.find("infrastructure", "cluster")

    def status(self) -> Any:
        """Its status; empty without one."""
        return (self.now() or {}).get("status") or {}

    def is_none(self) -> bool:
        """Whether both fields name the platform `None`; the server adds others."""
        return {name: self.status().get(name) for name in NONE} == NONE

    def delete(self) -> None:
        """Delete it."""
        self._objects.delete("infrastructure", "cluster")

    def writes(self) -> int:
        """How often the operator has written it so far."""
        writes = writes_by(self._plane.audit_log, USER)
        return len([one for one in writes if one.resource.startswith("infrastructures")])


@pytest.fixture
def platform(
    control_plane: ControlPlane, crds: list[str], clean_cluster: None
) -> Iterator[Platform]:
    """A cluster without an Infrastructure."""
    platform = Platform(control_plane)
    platform.delete()
    yield platform
    platform.delete()
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
    control_plane.requests().send("DELETE", leases)


@pytest.fixture(params=["the operator", "local up"])
def name_platform(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    account: Path,
    own_operators: OwnOperators,
) -> NamePlatform:
    """Each of the two that name the platform."""
    if request.param == "local up":
        return lambda: ensure_infrastructure(control_plane)
    start = own_operators(control_plane, "cluster-version", account=account)

    def run() -> None:
        operator = start("--default-platform=None")
        eventually(lambda: operator.metric(RECONCILED) > 0, "it has looked")

    return run


def test_without_an_infrastructure_one_is_created(
    platform: Platform, name_platform: NamePlatform
) -> None:
    name_platform()
    eventually(platform.is_none, "the platform is None")


def test_an_infrastructure_without_a_platform_gets_it(
    platform: Platform, name_platform: NamePlatform
) -> None:
    """What else its status has is kept."""
    platform.create({"infrastructureName": "mine"})
    before = platform.status()
    assert before["infrastructureName"] == "mine"
    name_platform()
    eventually(lambda: platform.status() == {**before, **NONE}, "the platform is None")


@pytest.mark.parametrize(
    "status", [pytest.param(OLDER, id="older field"), pytest.param(NEWER, id="newer field")]
)
def test_a_platform_that_somebody_named_is_left_alone(
    platform: Platform, name_platform: NamePlatform, status: Any
) -> None:
    platform.create(status)
    before, writes = platform.now(), platform.writes()
    name_platform()
    assert platform.now() == before
    assert platform.writes() == writes


def test_the_platform_is_named_again_if_the_infrastructure_is_deleted(
    platform: Platform, control_plane: ControlPlane, account: Path, own_operators: OwnOperators
) -> None:
    start = own_operators(control_plane, "cluster-version", account=account)
    start("--default-platform=None")
    eventually(platform.is_none, "the platform is None")
    platform.delete()
    eventually(platform.is_none, "it is None again")


def test_without_the_option_nothing_is_created(
    platform: Platform, control_plane: ControlPlane, account: Path, own_operators: OwnOperators
) -> None:
    """By default the operator leaves the platform to others."""
    operator = own_operators(control_plane, "cluster-version", account=account)()
    eventually(lambda: operator.get("/readyz")[0] == 200, "it runs")
    assert 'controller="platform"' not in operator.get("/metrics")[1]
    assert platform.now() is None
