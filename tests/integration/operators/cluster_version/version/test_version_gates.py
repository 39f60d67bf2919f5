"""Feature gates that a payload brings: its manifests and the FeatureGate's status agree on them."""

from typing import Any

from tests.integration.operators.cluster_version.version.releases import (
    INCLUDE,
    Cluster,
    Releases,
    config_map,
    counted,
)

from quarterdeck.api.meta import Object
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

KIND = {"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate"}
GATE = "release.openshift.io/feature-gate"


def listing(feature_set: str, on: list[str], off: list[str]) -> Object:
    """What a payload says of its gates in one feature set; it is read, and never applied."""
    annotations = {
        INCLUDE: "false-except-for-the-config-operator",
        "release.openshift.io/feature-set": feature_set,
    }
    gates = {
        "version": "0.0.1-snapshot",
        "enabled": [{"name": name} for name in on],
        "disabled": [{"name": name} for name in off],
    }
    metadata = {"name": "cluster", "annotations": annotations}
    return {**KIND, "metadata": metadata, "spec": {}, "status": {"featureGates": [gates]}}


def told(cluster: Cluster) -> dict[str, dict[str, bool]]:
    """The gates of each version, as the FeatureGate's status has them."""
    found: Any = cluster.find("featuregate", "cluster") or {}
    return {
        entry["version"]: {gate["name"]: True for gate in entry.get("enabled", [])}
        | {gate["name"]: False for gate in entry.get("disabled", [])}
        for entry in found.get("status", {}).get("featureGates", [])
    }


def test_the_status_says_what_the_payloads_manifests_were_chosen_by(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator
) -> None:
    here = cluster.namespace
    files = {
        "0000_10_gates_00.json": listing("Default", ["Sails"], ["Steam"]),
        "0000_10_gates_01.json": listing("TechPreviewNoUpgrade", ["Sails", "Steam"], []),
        "0000_20_a_00.json": counted(config_map("sails", here), **{GATE: "Sails"}),
        "0000_20_a_01.json": counted(config_map("steam", here), **{GATE: "Steam"}),
    }
    releases.write("1.0.0", files)
    cluster.apply({**KIND, "metadata": {"name": "cluster"}, "spec": {}})
    run_cvo()
    cluster.wait_release("1.0.0")

    def says(**wanted: bool) -> Any:
        return lambda: wanted.items() <= told(cluster).get("1.0.0", {}).items()

    eventually(says(Sails=True, Steam=False), "the gates of the payload in the status")
    assert cluster.find("configmap", "sails")
    assert not cluster.find("configmap", "steam")
    preview = {"featureSet": "TechPreviewNoUpgrade"}
    cluster.patch("featuregate", "cluster", {"spec": preview})
    eventually(says(Sails=True, Steam=True), "the gates of the other feature set")
    eventually(lambda: cluster.find("configmap", "steam"), "the manifest behind the gate")
