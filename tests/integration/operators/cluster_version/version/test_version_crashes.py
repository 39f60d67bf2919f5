"""The operator killed in the middle of updates: where it ends is where it would have."""

import random
import time
from typing import Any

import pytest
from tests.integration.operators.cluster_version.version.releases import (
    Cluster,
    Releases,
    config_map,
    counted,
    definition,
    deployment,
    job,
    own_deployment,
)

from quarterdeck.testing.operator_process import StartOperator

DELETE = {"release.openshift.io/delete": "true"}
LONGEST = 3.0
"""Seconds after which an update, its start included, is over on an idle machine."""


def versions(count: int) -> list[str]:
    return [f"1.{number}.0" for number in range(count + 2)]


def write_releases(
    releases: Releases, here: str, chain: list[str], *, both_nodes: bool = False
) -> None:
    """Releases each of which can be reached from the one before, all alike but for the version.

    All pods are on the node `simulated`, unless both nodes are wanted.
    """
    group = f"{here}.example.test"
    for number, version in enumerate(chain):
        before = chain[number - 1] if number else ""
        files: dict[str, Any] = {
            "0000_10_lookout_00.json": definition(group, **{f"since{number}": "string"}),
            "0000_10_lookout_10.json": counted(
                {
                    "apiVersion": f"{group}/v1",
                    "kind": "Lookout",
                    "metadata": {"name": "mast", "namespace": here},
                    "spec": {f"since{number}": "yes"},
                }
            ),
            "0000_30_slow_00.json": deployment("slow", here, simulate="slow", NUMBER=version),
            "0000_40_migrate_00.json": job(f"migrate-{version}", here),
            "0000_50_pilot_00.json": deployment("pilot", here, NUMBER=version),
            "0000_60_new_00.json": config_map(f"new-{version}", here, text=version),
        }
        template = files["0000_30_slow_00.json"]["spec"]["template"]
        template["metadata"]["annotations"]["quarterdeck.dev/simulate-delay"] = "500ms"
        if both_nodes:
            files["0000_55_aboard_00.json"] = own_deployment("aboard", here, NUMBER=version)
        for level in (20, 35, 45, 70):
            for index in range(5):
                name = f"map-{level}-{index}"
                files[f"0000_{level}_maps_{index:02}.json"] = config_map(name, here, text=version)
        if before:
            gone = config_map(f"new-{before}", here)
            files["0000_80_old_00.json"] = counted(gone, **DELETE)
        releases.write(version, files, [before] if before else [])


def ended(cluster: Cluster, version: str, before: str, number: int) -> list[Any]:
    """Everything of a release that there is, with what differs between two of them replaced."""

    def same(value: Any) -> Any:
        if isinstance(value, dict):
            return {same(key): same(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [same(inner) for inner in value]
        if isinstance(value, str):
            value = value.replace(version, "VERSION").replace(before, "BEFORE")
            return value.replace(f"since{number}", "sinceN")
        return value

    found: list[Any] = []
    # With its group: another test's definition may have the same name.
    lookouts = f"lookouts.{cluster.namespace}.example.test"
    for kind in ("configmaps", "deployments", lookouts, "jobs"):
        for obj in cluster.all(kind):
            name = obj["metadata"]["name"]
            if name == "kube-root-ca.crt" or (kind == "jobs" and not name.endswith(version)):
                continue
            about = {"kind": obj["kind"], "name": name, "data": obj.get("data")}
            annotations = dict(obj["metadata"]["annotations"])
            annotations.pop("deployment.kubernetes.io/revision", None)
            about["annotations"] = annotations
            if kind == "jobs":
                # A Job that has run is not run again.
                about["ran"] = obj["status"]["succeeded"]
                pods = cluster.all("pods", f"job-name={name}")
                about["pods"] = len(pods)
            else:
                about["spec"] = obj.get("spec")
            if kind == "deployments":
                about["ready"] = obj["status"].get("readyReplicas")
            found.append(same(about))
    (crd,) = (
        one for one in cluster.all("crds") if one["spec"]["group"].startswith(cluster.namespace)
    )
    found.append(same(crd["spec"]["versions"]))
    return sorted(found, key=str)


def crash_through(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator, count: int, seed: int
) -> None:
    dice = random.Random(seed)
    chain = versions(count)
    write_releases(releases, cluster.namespace, chain)
    cvo = run_cvo(chain[0])
    cluster.wait_release(chain[0])
    cluster.ask(version=chain[1])
    cluster.wait_release(chain[1])
    expected = ended(cluster, chain[1], chain[0], 1)
    for number, version in enumerate(chain[2:], 2):
        cluster.ask(version=version)
        killed_after = []
        for _ in range(dice.choice([1, 1, 2])):
            killed_after.append(dice.uniform(0, LONGEST))
            time.sleep(killed_after[-1])
            cvo.kill()
            cvo = run_cvo(chain[0])
        cluster.wait_release(version)
        cluster.wait_condition("Progressing", "False")
        seen = ended(cluster, version, chain[number - 1], number)
        assert seen == expected, f"{version}, seed {seed}, killed after {killed_after}"
    done = cluster.status()["history"]
    assert [one["version"] for one in done] == chain[::-1]
    assert {one["state"] for one in done} == {"Completed"}


@pytest.mark.slow
def test_killed_at_random_points_of_an_update_it_ends_at_the_same_state(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator
) -> None:
    """Three updates, each with the operator killed with -9 once or twice on the way."""
    crash_through(cluster, releases, run_cvo, count=3, seed=random.randrange(10_000))


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_killed_fifty_times(cluster: Cluster, releases: Releases, run_cvo: StartOperator) -> None:
    """The same in fifty updates."""
    crash_through(cluster, releases, run_cvo, count=50, seed=random.randrange(10_000))
