"""Updates by two replicas whose leader is lost on the way: they end as they would have."""

import random
from pathlib import Path

import pytest
from tests.integration.operators.cluster_version.version.releases import Cluster, Releases
from tests.integration.operators.cluster_version.version.replicas import WAYS, Replica, replicas
from tests.integration.operators.cluster_version.version.test_version_crashes import (
    ended,
    versions,
    write_releases,
)
from tests.integration.pods import RUN_HERE

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually


def wait_step(cluster: Cluster, leader: Replica, step: int, version: str) -> None:
    """Return when the leader has written so often, or has nothing left to do."""

    def look() -> bool:
        newest = cluster.status()["history"][0]
        done = (newest["version"], newest["state"]) == (version, "Completed")
        return leader.steps() > step or done

    eventually(look, f"step {step} of {version}")


def lose_leaders(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator, files: Path, count: int
) -> None:
    """As many updates, in each of which the leader is lost, at steps spread over all of them."""
    seed = random.randrange(10_000)
    dice = random.Random(seed)
    chain = versions(count)
    write_releases(releases, cluster.namespace, chain, both_nodes=RUN_HERE)
    ways = [WAYS[number % len(WAYS)] for number in range(count)]
    dice.shuffle(ways)
    with replicas(cluster, run_cvo, chain[0], files) as run:
        cluster.wait_release(chain[0])
        leader = run.leader()
        leader.proxy.forget()
        cluster.ask(version=chain[1])
        cluster.wait_release(chain[1])
        steps = leader.steps()
        expected = ended(cluster, chain[1], chain[0], 1)
        for number, way in enumerate(ways, 2):
            version = chain[number]
            step = int((number - 2 + dice.random()) * steps / count)
            about = f"{version}, seed {seed}: {way} after {step} of {steps} writes"
            leader = run.leader()
            leader.proxy.forget()
            cluster.ask(version=version)
            wait_step(cluster, leader, step, version)
            run.lose(leader, way)
            cluster.wait_release(version)
            cluster.wait_condition("Progressing", "False")
            assert run.end(leader, way) == [], about
            assert ended(cluster, version, chain[number - 1], number) == expected, about
        history = cluster.status()["history"]
        assert [one["version"] for one in history] == chain[::-1]
        assert {one["state"] for one in history} == {"Completed"}


@pytest.mark.slow
def test_a_leader_that_is_lost_in_an_update_is_replaced_and_the_update_ends_the_same(
    cluster: Cluster,
    releases: Releases,
    run_cvo: StartOperator,
    node_agent: ControlPlane,
    tmp_path: Path,
) -> None:
    """Killed, paused, cut off, without the server's answers, and one of them once more."""
    lose_leaders(cluster, releases, run_cvo, tmp_path, count=5)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_fifty_leaders_are_lost(
    cluster: Cluster,
    releases: Releases,
    run_cvo: StartOperator,
    node_agent: ControlPlane,
    tmp_path: Path,
) -> None:
    """The same in fifty updates."""
    lose_leaders(cluster, releases, run_cvo, tmp_path, count=50)
