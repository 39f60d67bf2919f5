"""A release that makes optional what the cluster runs."""

from tests.integration.operators.cluster_version.version.releases import (
    Cluster,
    Releases,
    config_map,
    counted,
)

from quarterdeck.testing.operator_process import StartOperator

CONSOLE = {"capability.openshift.io/name": "Console"}
INGRESS = {"capability.openshift.io/name": "Ingress"}


def test_an_update_does_not_take_away_what_the_cluster_runs(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator
) -> None:
    """The capability is enabled with the update, whole, and stays; others are not."""
    here = cluster.namespace
    releases.write(
        "1.0.0",
        {
            "0000_10_a_00.json": config_map("runs", here, version="1.0.0"),
            "0000_10_b_00.json": counted(config_map("left-out", here), **INGRESS),
        },
    )
    releases.write(
        "1.1.0",
        {
            "0000_10_a_00.json": counted(config_map("runs", here, version="1.1.0"), **CONSOLE),
            "0000_10_a_01.json": counted(config_map("belongs-to-it", here), **CONSOLE),
            "0000_10_b_00.json": counted(config_map("left-out", here), **INGRESS),
        },
        ["1.0.0"],
    )
    cluster.apply(
        {
            "apiVersion": "config.openshift.io/v1",
            "kind": "ClusterVersion",
            "metadata": {"name": "version"},
            "spec": {
                "clusterID": "8e2b8cc2-9f4a-4ac7-8a64-3b7c3f0f6a1e",
                "capabilities": {"baselineCapabilitySet": "None"},
            },
        }
    )
    first = run_cvo()
    cluster.wait_release("1.0.0")
    assert not cluster.status()["capabilities"].get("enabledCapabilities")
    assert cluster.condition("ImplicitlyEnabledCapabilities")["status"] == "False"

    cluster.ask(version="1.1.0")
    cluster.wait_release("1.1.0")
    assert cluster.status()["capabilities"]["enabledCapabilities"] == ["Console"]
    implicit = cluster.condition("ImplicitlyEnabledCapabilities")
    assert (implicit["status"], implicit["reason"]) == ("True", "CapabilitiesImplicitlyEnabled")
    assert implicit["message"].endswith(": Console")
    assert cluster.find("configmap", "runs")["data"] == {"version": "1.1.0"}
    assert cluster.find("configmap", "belongs-to-it")
    assert not cluster.find("configmap", "left-out")

    # It is in the status alone, so whoever comes next knows it.
    first.kill()
    run_cvo("1.1.0")
    cluster.kubectl("delete", "configmap", "runs")
    cluster.kubectl("wait", "configmap/runs", "--for=create", "--timeout=60s")
    assert cluster.status()["capabilities"]["enabledCapabilities"] == ["Console"]
