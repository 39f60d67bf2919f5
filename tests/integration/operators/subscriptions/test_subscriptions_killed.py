"""The operator killed in an install and in an update: at exact writes, and at random times.

The bundle has everything that is written for one: a definition, a Service, an account, rights in
the namespace and in the cluster, and a Deployment.
"""

import random
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.integration.operators.subscriptions.bundles import (
    bundle,
    definition,
    deployment,
    service,
)
from tests.integration.operators.subscriptions.conftest import LIMIT, Cluster, publish

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.operators.subscriptions.catalog.bundles import BundleDirectory
from quarterdeck.testing.fault_proxy import FaultProxy, Late
from quarterdeck.testing.operator_process import (
    OperatorProcess,
    OwnOperators,
    StartOperator,
    own_account,
)
from quarterdeck.testing.waiting import eventually

ENTRY: Object = {"env": [{"name": "ARGS", "value": "-v=4"}]}
OLD, NEW = "engine.v1.0.0", "engine.v1.1.0"
NODES: Object = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
OWN = "quarterdeck.dev/"

Step = tuple[str, str, int]
"""Verb and resource of a write, and how many such requests come before it: dry runs."""
INSTALL: list[Step] = [
    ("create", "installplans", 0),
    ("create", "customresourcedefinitions", 1),
    ("create", "clusterserviceversions", 1),
    ("patch", "clusterserviceversions", 0),  # the finalizer
    ("create", "serviceaccounts", 0),
    ("create", "roles", 0),
    ("create", "rolebindings", 0),
    ("create", "clusterroles", 0),
    ("create", "clusterrolebindings", 0),
    ("create", "services", 0),
    ("create", "deployments", 0),
    ("patch", "clusterserviceversions/status", 0),
    ("patch", "installplans/status", 0),
    ("patch", "subscriptions/status", 0),
]
UPDATE: list[Step] = [
    ("create", "installplans", 0),
    ("patch", "customresourcedefinitions", 0),
    ("create", "clusterserviceversions", 1),
    ("patch", "clusterserviceversions", 0),
    ("patch", "serviceaccounts", 0),
    ("create", "roles", 0),
    ("create", "rolebindings", 0),
    ("create", "clusterroles", 0),
    ("create", "clusterrolebindings", 0),
    ("patch", "services", 0),
    ("patch", "deployments", 0),
    ("delete", "clusterserviceversions", 0),
    ("delete", "clusterrolebindings", 0),
    ("delete", "clusterroles", 0),
    ("delete", "rolebindings", 0),
    ("delete", "roles", 0),
]
LONG = 300.0
"""Seconds for which an answer does not come: more than the operator lives."""


def versions(cluster: Cluster) -> tuple[BundleDirectory, BundleDirectory]:
    """Two versions; each object of the second one differs."""
    kind = definition(f"{cluster.namespace}.example.com")
    newer = definition(f"{cluster.namespace}.example.com")
    newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "newer"
    port: Object = {**service("engine"), "spec": {"ports": [{"port": 81}]}}
    return (
        bundle("1.0.0", definitions=(kind,), services=(service("engine"),), cluster_rules=[NODES]),
        bundle(
            "1.1.0",
            replaces=OLD,
            deployments=[deployment(env=[{"name": "NEW", "value": "1"}])],
            definitions=(newer,),
            services=(port,),
            cluster_rules=[NODES, {**NODES, "verbs": ["get"]}],
        ),
    )


def settled(cluster: Cluster) -> Object:
    """What an installation ends with, apart from what the server generates."""
    kind = f"engines.{cluster.namespace}.example.com"
    defined = cluster.find("customresourcedefinition", kind) or {"metadata": {}}
    mine = f"{OWN}csv-namespace={cluster.namespace}"

    def owners(of: str, selector: str = "") -> list[str]:
        """The version in the annotation of each object, once for each."""
        found = [one["metadata"] for one in cluster.list(of, selector)]
        return sorted(str((one.get("annotations") or {}).get(f"{OWN}csv")) for one in found)

    status = cluster.status("subscription", "engine")
    return {
        "csvs": sorted(
            (one["metadata"]["name"], one.get("status", {}).get("phase"))
            for one in cluster.list("csv")
        ),
        "plans": sorted(
            (one["spec"]["clusterServiceVersionNames"][0], one.get("status", {}).get("phase"))
            for one in cluster.list("installplan")
        ),
        "definition": defined["metadata"].get("annotations", {}).get(f"{OWN}package-version"),
        **{of: owners(of, mine) for of in PARTS},
        "installed": status.get("installedCSV"),
        "state": status.get("state"),
        "conditions": status.get("conditions", []),
    }


PARTS = (
    "serviceaccount",
    "role",
    "rolebinding",
    "clusterrole",
    "clusterrolebinding",
    "service",
    "deployment",
)


def wanted(cluster: Cluster, *names: str) -> Object:
    """What is there when the last of these versions is installed."""
    version = names[-1]
    return {
        "csvs": [(version, "Succeeded")],
        "plans": [(name, "Complete") for name in names],
        "definition": version.removeprefix("engine.v"),
        **{of: [f"{cluster.namespace}/{version}"] for of in PARTS},
        "installed": version,
        "state": "AtLatestKnown",
        "conditions": [],
    }


def wait_settled(cluster: Cluster, *names: str) -> None:
    end = wanted(cluster, *names)
    try:
        eventually(lambda: settled(cluster) == end, "the same end", 2 * LIMIT)
    except AssertionError as error:
        text = f"{settled(cluster)}\nwanted {end}\n{cluster.describe()}"
        raise AssertionError(f"{error}: {text}") from None


class Killed:
    """The operator behind a proxy, and what kills it."""

    def __init__(self, cluster: Cluster, proxy: FaultProxy, start: StartOperator) -> None:
        self.cluster = cluster
        self._proxy = proxy
        self._start = start
        self._running: OperatorProcess | None = None

    def at(self, step: Step, end: Object) -> None:
        """Kill it when the server has this write, and before the operator has the answer.

        If everything is settled the write was made before: by the other controllers, while this
        one waited for an answer.
        """
        verb, resource, before = step
        self.kill()
        self._proxy.clear()
        self._proxy.forget()
        self._proxy.inject(Late(LONG), verb=verb, resource=resource, times=None, skip=before)
        self._running = self._start()

        def made() -> bool:
            count = self._proxy.count(verb=verb, resource=resource)
            return count > before or settled(self.cluster) == end

        eventually(made, f"{verb} {resource}", LIMIT)
        self.kill()

    def go_on(self) -> None:
        """Let it run."""
        self.kill()
        self._proxy.clear()
        self._running = self._start()

    def kill(self) -> None:
        """Kill it."""
        if self._running is not None:
            self._running.kill()
            self._running = None


@pytest.fixture
def killed(
    control_plane: ControlPlane,
    operator: OperatorProcess,
    cluster: Cluster,
    catalog_root: Path,
    own_operators: OwnOperators,
    fault_proxy: FaultProxy,
    tmp_path: Path,
) -> Iterator[Killed]:
    """The only operator that runs."""
    operator.kill()
    token = yaml.safe_load(own_account(control_plane, "subscriptions").read_text())
    path = fault_proxy.write_kubeconfig(
        tmp_path / "proxied.kubeconfig", token["users"][0]["user"]["token"]
    )
    options = (f"--catalog-root={catalog_root}", "--catalog-interval=1s")
    start = own_operators(control_plane, "subscriptions", *options, account=path)
    made = Killed(cluster, fault_proxy, start)
    yield made
    made.kill()


def kill_at_writes(
    killed: Killed, catalog_root: Path, install: Iterable[Step], update: Iterable[Step]
) -> None:
    cluster = killed.cluster
    first, second = versions(cluster)
    publish(cluster, catalog_root, first)
    cluster.subscribe("engine", config=[ENTRY])
    for step in install:
        killed.at(step, wanted(cluster, OLD))
    killed.go_on()
    wait_settled(cluster, OLD)
    uid = cluster.get("deployment", "engine")["metadata"]["uid"]
    publish(cluster, catalog_root, first, second)
    for step in update:
        killed.at(step, wanted(cluster, OLD, NEW))
    killed.go_on()
    wait_settled(cluster, OLD, NEW)
    assert list(cluster.env("engine")) == ["NEW", "ARGS"]
    assert cluster.get("deployment", "engine")["metadata"]["uid"] == uid
    assert cluster.get("service", "engine")["spec"]["ports"][0]["port"] == 81


def test_killed_at_some_of_its_writes_the_end_is_the_same(
    killed: Killed, catalog_root: Path
) -> None:
    """Three writes of an install and two of an update, others in each run."""
    chance = random.Random()
    install, update = (sorted(chance.sample(range(len(of)), n)) for of, n in SAMPLES)
    kill_at_writes(killed, catalog_root, [INSTALL[n] for n in install], [UPDATE[n] for n in update])


SAMPLES = ((INSTALL, 3), (UPDATE, 2))


@pytest.mark.soak
def test_killed_at_each_of_its_writes_the_end_is_the_same(
    killed: Killed, catalog_root: Path
) -> None:
    kill_at_writes(killed, catalog_root, INSTALL, UPDATE)


@pytest.fixture
def killed_later(
    start_operator: StartOperator, operator: OperatorProcess
) -> Callable[[float], None]:
    """Kills the operator after some seconds, and starts it again."""
    running = [start_operator()]
    operator.kill()

    def kill(after: float) -> None:
        time.sleep(after)
        running[-1].kill()
        running.append(start_operator())

    return kill


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_killed_fifty_times_the_end_is_the_same(
    cluster: Cluster, catalog_root: Path, killed_later: Callable[[float], None], seed: int
) -> None:
    """At random times of an install and an update, five times in each case."""
    chance = random.Random(seed)
    publish(cluster, catalog_root, *versions(cluster))
    cluster.subscribe("engine", startingCSV=OLD, config=[ENTRY])
    for _ in range(5):
        killed_later(chance.uniform(0.1, 1.5))
    wait_settled(cluster, OLD, NEW)
