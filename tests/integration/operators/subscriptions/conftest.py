"""The operator of Subscriptions in its own process and account, with a catalog of its own."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.places import FIXTURES

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.operators.subscriptions.catalog.bundles import (
    BundleDirectory,
    bundle_directories,
    catalog_entries,
    read_bundle,
)
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.operator_process import OperatorProcess, OwnOperators, StartOperator
from quarterdeck.testing.waiting import eventually

LIMIT = 60.0
HOME = "openshift-operator-lifecycle-manager"
REPORTED = "/apis/config.openshift.io/v1/clusteroperators/operator-lifecycle-manager"


def write_catalog(directory: Path, bundles: list[BundleDirectory]) -> None:
    """Write the catalog of these bundles."""
    for name, entries in catalog_entries(bundles).items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(map(json.dumps, entries)))


RealBundle = Callable[[str], BundleDirectory]


@pytest.fixture(scope="session")
def real_bundle() -> RealBundle:
    """Gives a real bundle by its name; it takes seconds to read all of them."""
    if not FIXTURES.is_dir():
        pytest.skip("the bundles are not beside this clone")
    directories = {one.name: one for one in bundle_directories([FIXTURES / "bundles"])}

    def read(name: str) -> BundleDirectory:
        version = name.partition(".")[2].removeprefix("v")
        made = read_bundle(directories[version])
        assert isinstance(made, BundleDirectory), made
        assert made.name == name
        return made

    return read


@pytest.fixture(scope="module")
def catalog_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory below which the operator reads catalogs."""
    return tmp_path_factory.mktemp("catalogs")


@pytest.fixture(scope="module")
def start_operator(
    control_plane: ControlPlane,
    crds: list[str],
    catalog_root: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[StartOperator]:
    """Starts the operator; all that were started are killed after the module."""
    operators = OwnOperators(tmp_path_factory.mktemp("operators"))
    yield operators(
        control_plane,
        "subscriptions",
        f"--catalog-root={catalog_root}",
        "--catalog-interval=1s",
    )
    operators.kill()
    control_plane.requests().send("DELETE", REPORTED)


@pytest.fixture(scope="module")
def operator(control_plane: ControlPlane, start_operator: StartOperator) -> OperatorProcess:
    """The operator, running for all tests of the module.

    Its ClusterOperator is there when a test begins, which would remove it as one of its own.
    """
    started = start_operator()
    requests = control_plane.requests()
    eventually(lambda: requests.send("GET", REPORTED).ok, "its ClusterOperator", LIMIT)
    return started


class Cluster(ApiObjects):
    """A namespace, seen and changed by an administrator."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        super().__init__(control_plane.requests(), namespace)
        self.control_plane = control_plane
        self.namespace = namespace

    def catalog_source(self, directory: str, name: str = "catalog") -> None:
        self.apply(
            {
                "apiVersion": "operators.coreos.com/v1alpha1",
                "kind": "CatalogSource",
                "metadata": {"name": name},
                "spec": {"sourceType": "directory", "directory": directory},
            }
        )

    def subscribe(self, package: str, *, name: str = "", **spec: Any) -> Object:
        return self.apply(
            {
                "apiVersion": "operators.coreos.com/v1alpha1",
                "kind": "Subscription",
                "metadata": {"name": name or package},
                "spec": {"name": package, "source": "catalog", **spec},
            }
        )

    def status(self, kind: str, name: str) -> Any:
        found = self.find(kind, name)
        return (found or {}).get("status") or {}

    def phase(self, csv: str) -> str:
        return str(self.status("clusterserviceversion", csv).get("phase"))

    def wait_phase(self, csv: str, phase: str = "Succeeded") -> None:
        def reached() -> bool:
            return self.phase(csv) == phase

        try:
            eventually(reached, f"{csv} in phase {phase}", LIMIT)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.describe()}") from None

    def describe(self) -> str:
        found = []
        for kind in ("subscription", "installplan", "clusterserviceversion", "catalogsource"):
            for one in self.list(kind):
                text = json.dumps(one.get("status"), indent=1)
                found.append(f"{kind} {one['metadata']['name']}: {text}")
        for pod in self.list("pod"):
            found.append(f"pod {pod['metadata']['name']}: {json.dumps(pod.get('status'))}")
            log = self.control_plane.kubectl(
                "logs", "-n", self.namespace, pod["metadata"]["name"], check=False
            )
            found.append(log.stdout[-2000:])
        return "\n".join(found)

    def condition(self, subscription: str, type_: str) -> Object | None:
        conditions = self.status("subscription", subscription).get("conditions") or []
        return next((one for one in conditions if one["type"] == type_), None)

    def wait_condition(self, subscription: str, type_: str, words: str = "") -> Object:
        def found() -> Object | None:
            condition = self.condition(subscription, type_)
            return condition if condition and words in str(condition) else None

        try:
            return eventually(found, f"{type_} of {subscription} with {words!r}", LIMIT)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.describe()}") from None

    def wait_no_condition(self, subscription: str, type_: str) -> None:
        def gone() -> bool:
            return self.condition(subscription, type_) is None

        eventually(gone, f"no {type_} of {subscription}", LIMIT)

    def env(self, deployment: str, container: int = 0) -> dict[str, Any]:
        pod = self.get("deployment", deployment)["spec"]["template"]["spec"]
        return {one["name"]: one for one in pod["containers"][container].get("env") or ()}


def publish(cluster: Cluster, catalog_root: Path, *bundles: BundleDirectory) -> None:
    """Make the catalog of the namespace have these bundles."""
    write_catalog(catalog_root / cluster.namespace, list(bundles))
    cluster.catalog_source(cluster.namespace)


@pytest.fixture
def cluster(
    control_plane: ControlPlane, operator: OperatorProcess, clean_cluster: None, namespace: str
) -> Cluster:
    """The namespace of the test."""
    return Cluster(control_plane, namespace)


@pytest.fixture
def home(control_plane: ControlPlane, cluster: Cluster) -> Iterator[Cluster]:
    """The namespace of the operator; the CatalogSource that a test creates there is removed."""
    made = Cluster(control_plane, HOME)
    yield made
    if made.find("catalogsource", "catalog") is not None:
        made.delete("catalogsource", "catalog")


WaitFor = Callable[[Callable[[], bool], str], None]
