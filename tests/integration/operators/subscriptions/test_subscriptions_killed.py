"""The operator killed at random points of an install and of an update."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.operators.subscriptions.bundles import bundle
from tests.integration.operators.subscriptions.conftest import LIMIT, Cluster, write_catalog

from quarterdeck.api.meta import Object
from quarterdeck.testing.operator_process import OperatorProcess, StartOperator
from quarterdeck.testing.waiting import eventually

ENTRY: Object = {"env": [{"name": "ARGS", "value": "-v=4"}]}


def settled(cluster: Cluster) -> Object:
    """What an installation ends with, apart from what the server generates."""
    deployed = cluster.get("deployment", "engine")
    return {
        "csvs": sorted(
            (one["metadata"]["name"], one.get("status", {}).get("phase"))
            for one in cluster.list("csv")
        ),
        "plans": sorted(
            (one["spec"]["clusterServiceVersionNames"][0], one.get("status", {}).get("phase"))
            for one in cluster.list("installplan")
        ),
        "env": sorted(cluster.env("engine")),
        "owners": [one["name"] for one in deployed["metadata"]["ownerReferences"]],
        "roles": len(cluster.list("role")),
        "bindings": len(cluster.list("rolebinding")),
        "installed": cluster.status("subscription", "engine").get("installedCSV"),
        "state": cluster.status("subscription", "engine").get("state"),
    }


WANTED: Object = {
    "csvs": [("engine.v1.1.0", "Succeeded")],
    "plans": [("engine.v1.0.0", "Complete"), ("engine.v1.1.0", "Complete")],
    "env": ["ARGS", "NAMESPACES"],
    "owners": ["engine.v1.1.0"],
    "roles": 1,
    "bindings": 1,
    "installed": "engine.v1.1.0",
    "state": "AtLatestKnown",
}


@pytest.fixture
def killed(start_operator: StartOperator, operator: OperatorProcess) -> Callable[[float], None]:
    """Kills the operator after some seconds, and starts it again."""
    running = [start_operator()]
    operator.kill()

    def kill(after: float) -> None:
        time.sleep(after)
        running[-1].kill()
        running.append(start_operator())

    return kill


def kill_and_compare(
    cluster: Cluster, catalog_root: Path, kill: Callable[[float], None], seed: int
) -> None:
    chance = random.Random(seed)
    versions = [bundle("1.0.0"), bundle("1.1.0", replaces="engine.v1.0.0")]
    write_catalog(catalog_root / cluster.namespace, versions)
    cluster.catalog_source(cluster.namespace)
    cluster.subscribe("engine", startingCSV="engine.v1.0.0", config=[ENTRY])
    for _ in range(5):
        kill(chance.uniform(0.1, 1.5))

    def done() -> bool:
        return cluster.find("deployment", "engine") is not None and settled(cluster) == WANTED

    try:
        eventually(done, "the same end", 2 * LIMIT)
    except AssertionError as error:
        raise AssertionError(f"{error}: seed {seed}\n{cluster.describe()}") from None


def test_killed_at_random_points_the_end_is_the_same(
    cluster: Cluster, catalog_root: Path, killed: Callable[[float], None]
) -> None:
    """An install and an update, with the operator killed five times in between."""
    kill_and_compare(cluster, catalog_root, killed, random.randrange(1 << 16))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_killed_fifty_times_the_end_is_the_same(
    cluster: Cluster, catalog_root: Path, killed: Callable[[float], None], seed: int
) -> None:
    kill_and_compare(cluster, catalog_root, killed, seed)
