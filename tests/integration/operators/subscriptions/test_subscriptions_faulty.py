"""A faulty entry: its Deployment keeps the spec that was last applied, whole, also in an update."""

from pathlib import Path

from tests.integration.operators.subscriptions.bundles import bundle, deployment
from tests.integration.operators.subscriptions.conftest import LIMIT, Cluster, publish

from quarterdeck.api.meta import Object
from quarterdeck.testing.waiting import eventually

GOOD: Object = {"env": [{"name": "ARGS", "value": "-v=4"}]}
BAD: Object = {
    "deployments": ["engine"],
    "volumeMounts": [{"name": "certs", "mountPath": "/certs"}],
}


def events(cluster: Cluster, name: str) -> set[tuple[str, str]]:
    """Type and reason of the events about an object."""
    found = cluster.list("events.events.k8s.io")
    return {(one["type"], one["reason"]) for one in found if one["regarding"]["name"] == name}


def test_a_faulty_entry_before_and_in_an_update(cluster: Cluster, catalog_root: Path) -> None:
    old = bundle("1.0.0", deployments=[deployment("engine"), deployment("helper")])
    publish(cluster, catalog_root, old)
    cluster.subscribe("engine", config=[GOOD])
    cluster.wait_phase("engine.v1.0.0")
    before = cluster.get("deployment", "engine")

    def spec() -> Object:
        found: Object = cluster.get("deployment", "engine")["spec"]
        return found

    # An edit is undone, field by field, although nothing can be applied at the moment.
    cluster.subscribe("engine", config=[GOOD, BAD])
    cluster.wait_condition("engine", "ConfigFailure", "no volume named certs")
    edit = {"name": "main", "image": "example.com/other:2", "env": [{"name": "ARGS", "value": "x"}]}
    change = {"replicas": 2, "template": {"spec": {"containers": [edit]}}}
    cluster.patch("deployment", "engine", {"spec": change})
    eventually(lambda: spec() == before["spec"], "the spec is as it was applied", LIMIT)

    # An update waits with this Deployment, and takes the other one over.
    newer = [deployment("engine", env=[{"name": "NEW", "value": "1"}]), deployment("helper")]
    publish(
        cluster,
        catalog_root,
        old,
        bundle("1.1.0", replaces="engine.v1.0.0", deployments=newer),
    )
    cluster.wait_phase("engine.v1.1.0", "InstallReady")
    cluster.wait_phase("engine.v1.0.0", "Replacing")
    now = cluster.get("deployment", "engine")
    assert now["metadata"]["uid"] == before["metadata"]["uid"]
    assert now["spec"] == before["spec"]
    assert now["metadata"]["ownerReferences"][0]["name"] == "engine.v1.0.0"

    cluster.subscribe("engine", config=[GOOD])
    cluster.wait_phase("engine.v1.1.0")
    cluster.wait_no_condition("engine", "ConfigFailure")
    eventually(lambda: cluster.find("csv", "engine.v1.0.0") is None, "the old one is gone", LIMIT)
    now = cluster.get("deployment", "engine")
    assert now["metadata"]["uid"] == before["metadata"]["uid"]
    assert list(cluster.env("engine")) == ["NEW", "ARGS"]
    expected = {("Warning", "VolumeMountFailure"), ("Normal", "ConfigFailureResolved")}
    eventually(lambda: expected <= events(cluster, "engine"), "events of the config", LIMIT)
    about = {("Warning", "ConfigFailure"), ("Normal", "InstallSucceeded")}
    eventually(lambda: about <= events(cluster, "engine.v1.1.0"), "events of the CSV", LIMIT)
