"""From one release to another on a real cluster, with pods on both nodes."""

import json
import re

import pytest
import yaml
from tests.integration.operators.cluster_version.version.releases import (
    Cluster,
    Releases,
    config_map,
    counted,
    definition,
    deployment,
    job,
)
from tests.integration.pods import needs_bubblewrap
from tests.objects import cluster_operator
from tests.places import DEPLOY

from quarterdeck.api.config_v1 import CLUSTER_VERSIONS
from quarterdeck.api.meta import Object
from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.kube.watch_events import Modified
from quarterdeck.localcluster import ControlPlane
from quarterdeck.status import find_condition
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

OPERATOR = "system:serviceaccount:openshift-cluster-version:cluster-version-operator"
SAMPLE = "quarterdeck-sample"
CREATE_ONLY = {"release.openshift.io/create-only": "true"}
DELETE = {"release.openshift.io/delete": "true"}


def sample_operator() -> dict[str, Object]:
    """The sample operator as it is delivered, one replica, and the report to wait for."""
    files: dict[str, Object] = {}
    for name in ("rbac", "deployment"):
        documents = yaml.safe_load_all((DEPLOY / "sample" / f"{name}.yaml").read_text())
        for number, obj in enumerate(documents):
            if obj["kind"] == "Deployment":
                obj["spec"]["replicas"] = 1
            files[f"0000_30_sample_{name}_{number:02}.json"] = counted(obj)
    sample = cluster_operator("sample", operator="0.0.1-snapshot")
    files["0000_30_sample_zz_report.json"] = counted(sample)
    return files


def sample_versions(cluster: Cluster) -> list[str]:
    """What the sample operator says that it runs."""
    operator = cluster.find("clusteroperator", "sample") or {}
    return [one["version"] for one in operator.get("status", {}).get("versions", [])]


def sample_pods(cluster: Cluster) -> list[str]:
    """The release of each sample pod that is ready."""
    pods = cluster.all("pods", namespace=SAMPLE)
    ready = [
        pod
        for pod in pods
        for condition in pod["status"].get("conditions", [])
        if (condition["type"], condition["status"]) == ("Ready", "True")
    ]
    return [
        variable["value"]
        for pod in ready
        for variable in pod["spec"]["containers"][0]["env"]
        if variable["name"] == "RELEASE_VERSION"
    ]


async def test_every_message_of_an_update_in_order(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator
) -> None:
    """From its first status on, an update says how far it is itself, and never what was before."""
    here = cluster.namespace
    pilot = cluster_operator("pilot", operator="0.0.1-snapshot")
    releases.write("1.0.0", {"0000_10_a_00.json": config_map("a", here)})
    releases.write(
        "1.1.0",
        {
            "0000_10_a_00.json": config_map("a", here, tea="green"),
            "0000_20_pilot_00.json": counted(pilot),
            "0000_30_b_00.json": config_map("b", here),
        },
        ["1.0.0"],
    )
    run_cvo()
    cluster.wait_release("1.0.0")
    cluster.wait_condition("Progressing", "False", "Cluster version is 1.0.0")
    async with Client(load_kubeconfig(cluster.plane.kubeconfig)) as client:
        began = (await client.list(CLUSTER_VERSIONS)).resource_version
        cluster.ask(version="1.1.0")
        cluster.wait_condition("Progressing", "True", "waiting on pilot")
        cluster.report("pilot", Available=("True", ""), Degraded=("False", ""))
        versions = {"status": {"versions": [{"name": "operator", "version": "1.1.0"}]}}
        cluster.patch("clusteroperator", "pilot", versions, subresource="status")
        cluster.wait_release("1.1.0")
        told: list[str] = []
        async for event in client.watch(CLUSTER_VERSIONS, resource_version=began, timeout=60):
            assert isinstance(event, Modified)
            assert event.object.status is not None
            said = find_condition(event.object.status.conditions, "Progressing")
            assert said is not None
            told += [said.message] if [said.message] != told[-1:] else []
            if told[-1] == "Cluster version is 1.1.0":
                break
    assert told[:2] == ["Cluster version is 1.0.0", "Working towards 1.1.0"]
    assert "Working towards 1.1.0: 1 of 3 done (33% complete), waiting on pilot" in told
    progress = r"Working towards 1\.1\.0: ([0-2]) of 3 done \(\d+% complete\)(, waiting on pilot)?"
    steps = [re.fullmatch(progress, text) for text in told[2:-1]]
    assert all(steps), told
    done = [int(step[1]) for step in steps if step]
    assert done == sorted(done)


@pytest.mark.slow
@needs_bubblewrap
def test_an_update_replaces_a_running_version(
    node_agent: ControlPlane, cluster: Cluster, releases: Releases, run_cvo: StartOperator
) -> None:
    """Deployments on both nodes, a Job, a CRD change, a deletion, and an object left alone."""
    here, group = cluster.namespace, f"{cluster.namespace}.example.test"
    releases.write(
        "1.0.0",
        {
            "0000_10_lookout_00.json": definition(group, height="integer"),
            "0000_20_pilot_10.json": deployment("pilot", here, GREETING="ahoy"),
            "0000_40_old_00.json": config_map("old", here, rope="hemp"),
            "0000_50_own_00.json": counted(config_map("own", here, tea="black"), **CREATE_ONLY),
        }
        | sample_operator(),
    )
    releases.write(
        "1.1.0",
        {
            "0000_10_lookout_00.json": definition(group, height="integer", colour="string"),
            "0000_20_pilot_10.json": deployment("pilot", here, GREETING="hello"),
            "0000_25_pilot_00.json": job("migrate", here),
            "0000_40_old_00.json": counted(config_map("old", here), **DELETE),
            "0000_50_own_00.json": counted(config_map("own", here, tea="green"), **CREATE_ONLY),
        }
        | sample_operator(),
        ["1.0.0"],
    )
    run_cvo()
    cluster.wait_release("1.0.0")
    assert sample_versions(cluster) == ["1.0.0"]
    assert sample_pods(cluster) == ["1.0.0"]
    assert not cluster.find("job", "migrate")
    cluster.patch("configmap", "own", {"data": {"tea": "mint"}})

    cluster.ask(version="1.1.0")
    seen: set[tuple[str, bool]] = set()

    def updated() -> bool:
        # Each is looked at after what must come later: the history, the report, the pods.
        state = cluster.status()["history"][0]
        told, runs = sample_versions(cluster), sample_pods(cluster)
        seen.update((version, version in runs) for version in told)
        assert told != ["1.1.0"] or "1.1.0" in runs
        assert state["version"] != "1.1.0" or state["state"] == "Partial" or told == ["1.1.0"]
        return bool((state["version"], state["state"]) == ("1.1.0", "Completed"))

    eventually(updated, "1.1.0", limit=180)
    assert ("1.1.0", True) in seen
    fields = cluster.find("crd", f"lookouts.{group}")["spec"]["versions"][0]["schema"]
    assert "colour" in str(fields)
    pilot = cluster.find("deployment", "pilot")
    variables = pilot["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {one["name"]: one["value"] for one in variables} == {
        "GREETING": "hello",
        "RELEASE_VERSION": "1.1.0",
    }
    assert cluster.find("job", "migrate")["status"]["succeeded"] == 1
    assert cluster.find("configmap", "old") is None
    assert cluster.find("configmap", "own")["data"] == {"tea": "mint"}
    assert cluster.condition("Progressing")["message"] == "Cluster version is 1.1.0"
    assert [one["version"] for one in cluster.status()["history"]] == ["1.1.0", "1.0.0"]


@pytest.mark.slow
def test_a_deployment_that_never_gets_ready_stops_at_its_run_level(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator
) -> None:
    """It says what it waits for; nothing later is applied; the way out is another release."""
    here = cluster.namespace
    releases.write(
        "1.0.0",
        {
            "0000_20_pilot_10.json": deployment("pilot", here),
            "0000_30_late_00.json": config_map("late", here, version="1.0.0"),
        },
    )
    stuck = deployment("pilot", here, simulate="never-ready")
    stuck["spec"]["progressDeadlineSeconds"] = 3
    releases.write(
        "1.1.0",
        {
            "0000_20_pilot_10.json": stuck,
            "0000_30_late_00.json": config_map("late", here, version="1.1.0"),
        },
        ["1.0.0"],
    )
    releases.write(
        "1.1.1",
        {
            "0000_20_pilot_10.json": deployment("pilot", here, MENDED="yes"),
            "0000_30_late_00.json": config_map("late", here, version="1.1.1"),
        },
        ["1.0.0", "1.1.0"],
    )
    run_cvo()
    cluster.wait_release("1.0.0")
    cluster.ask(version="1.1.0")
    seen = cluster.wait_condition("Progressing", "True", "waiting on")
    assert f"waiting on Deployment {here}/pilot" in seen["message"]
    assert "Working towards 1.1.0: 0 of 2 done (0% complete)" in seen["message"]
    seen = cluster.wait_condition("Failing", "True", "0000_20_pilot_10.json: Deployment.apps")
    assert seen["reason"] == "DeploymentNotReady"
    assert "ProgressDeadlineExceeded" in seen["message"]
    assert "Unable to apply 1.1.0" in cluster.condition("Progressing")["message"]
    assert cluster.condition("Available")["message"] == "Done applying 1.0.0"
    assert cluster.find("configmap", "late")["data"] == {"version": "1.0.0"}
    # Taking the wish back does not stop what has begun.
    cluster.patch("clusterversion", "version", {"spec": {"desiredUpdate": None}})
    cluster.wait_observed()
    assert cluster.status()["desired"]["version"] == "1.1.0"
    assert cluster.condition("Failing")["status"] == "True"
    # Back is not listed, on is.
    cluster.ask(version="1.0.0")
    cluster.wait_condition("ReleaseAccepted", "False", "cannot be reached from 1.1.0")
    cluster.ask(version="1.1.1")
    cluster.wait_release("1.1.1")
    assert cluster.find("configmap", "late")["data"] == {"version": "1.1.1"}
    cluster.wait_condition("Failing", "False")
    history = [(one["version"], one["state"]) for one in cluster.status()["history"]]
    assert history == [("1.1.1", "Completed"), ("1.1.0", "Partial"), ("1.0.0", "Completed")]
    assert all(one["completionTime"] for one in cluster.status()["history"])


@pytest.mark.slow
def test_a_settled_cluster_is_not_written_to_and_drift_is_mended_at_once(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator, control_plane: ControlPlane
) -> None:
    here = cluster.namespace
    files: dict[str, Object] = {
        f"0000_20_pilot_{number:02}.json": config_map(f"map-{number}", here, text=str(number))
        for number in range(40)
    }
    releases.write("1.0.0", files | {"0000_30_late_00.json": deployment("pilot", here)})

    def count() -> int:
        written = writes_by(control_plane.audit_log, OPERATOR)
        return sum(one.resource.startswith("clusterversions") for one in written)

    before = count()
    run_cvo()
    cluster.wait_release("1.0.0")
    cluster.wait_condition("Progressing", "False")
    settled = count()
    # Created, begun, done, and a few words between: not one for each manifest.
    assert 3 <= settled - before <= 8
    cluster.kubectl("delete", "configmap", "map-7")
    eventually(lambda: cluster.find("configmap", "map-7"), "the deleted object")
    cluster.patch("configmap", "map-8", {"data": {"text": "drifted"}})
    eventually(
        lambda: cluster.find("configmap", "map-8")["data"]["text"] == "8", "the changed object"
    )
    sidecar = {"containers": [{"name": "miner", "image": "example.test/miner:1"}]}
    patch = json.dumps({"spec": {"template": {"spec": sidecar}}})
    cluster.kubectl("patch", "deployment", "pilot", "--field-manager=intruder", f"--patch={patch}")
    eventually(lambda: containers(cluster, "pilot") == ["main"], "the pod template of the release")
    (event,) = eventually(lambda: removals(cluster), "an event about the sidecar")
    assert (event["type"], event["regarding"]["kind"]) == ("Warning", "Deployment")
    assert event["regarding"]["name"] == "pilot"
    assert "intruder" in event["note"]
    assert "miner" in event["note"]
    assert cluster.condition("Progressing")["message"] == "Cluster version is 1.0.0"
    assert count() == settled


def containers(cluster: Cluster, name: str) -> list[str]:
    template = cluster.find("deployment", name)["spec"]["template"]
    return [one["name"] for one in template["spec"]["containers"]]


def removals(cluster: Cluster) -> list[Object]:
    """The events about fields of others that the operator has removed."""
    events = cluster.all("events.events.k8s.io")
    return [one for one in events if one["reason"] == "ForeignFieldsRemoved"]
