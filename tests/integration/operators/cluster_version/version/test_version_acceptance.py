"""Which updates a running operator begins, and what it says of those that it refuses."""

import pytest
from tests.integration.operators.cluster_version.version.releases import (
    Cluster,
    Releases,
    config_map,
    counted,
)
from tests.objects import cluster_operator, condition

from quarterdeck.api.meta import Object
from quarterdeck.payload.seal import seal
from quarterdeck.status.staleness_marks import verdict_message
from quarterdeck.testing.operator_process import StartOperator, own_account
from quarterdeck.testing.waiting import eventually

RBAC = "rbac.authorization.k8s.io"
BINDING = "quarterdeck-cluster-version"
"""By which the operator's account has its rights."""
HEALTHY = {"Available": "True", "Progressing": "False", "Degraded": "False", "Upgradeable": "True"}


def simple(cluster: Cluster, version: str) -> dict[str, Object | str]:
    """A release that is a single ConfigMap which says its version."""
    return {"0000_20_pilot_00.json": config_map("pilot", cluster.namespace, version=version)}


@pytest.fixture
def settled(cluster: Cluster, releases: Releases, run_cvo: StartOperator) -> Cluster:
    """A cluster at 1.0.0, with 1.0.1 and 1.1.0 in reach, and 2.0.0 out of it."""
    for version, previous in {
        "1.0.0": [],
        "1.0.1": ["1.0.0"],
        "1.1.0": ["1.0.0", "1.0.1"],
        "2.0.0": ["1.1.0"],
    }.items():
        releases.write(version, simple(cluster, version), previous)
    run_cvo()
    cluster.wait_release("1.0.0")
    return cluster


def applied(cluster: Cluster) -> str:
    found = cluster.find("configmap", "pilot")
    return str(found["data"]["version"]) if found else ""


def refused(cluster: Cluster, text: str) -> dict[str, str]:
    """ReleaseAccepted, when it says this; with an event, once, and nothing applied."""
    seen = cluster.wait_condition("ReleaseAccepted", "False", text)
    cluster.wait_observed()
    # One with the same reason may be there already, of what was refused before.
    eventually(
        lambda: seen["message"] in cluster.events(seen["reason"]), f"event {seen['message']}"
    )
    assert cluster.events(seen["reason"]).count(seen["message"]) == 1
    assert applied(cluster) == "1.0.0"
    assert cluster.condition("Failing")["status"] == "False"
    assert cluster.condition("Progressing")["status"] == "False"
    return seen


def test_a_cluster_without_a_version_gets_one_and_its_release(settled: Cluster) -> None:
    version = settled.find("clusterversion", "version")
    assert len(version["spec"]["clusterID"]) == 36
    status = version["status"]
    assert status["desired"] == {"version": "1.0.0", "image": "quarterdeck:1.0.0"}
    assert [one["version"] for one in status["availableUpdates"]] == ["1.1.0", "1.0.1"]
    assert status["history"][0]["completionTime"] >= status["history"][0]["startedTime"]
    assert status["versionHash"]
    assert settled.condition("Available")["status"] == "True"
    assert settled.condition("Upgradeable")["status"] == "True"
    assert settled.condition("Progressing")["message"] == "Cluster version is 1.0.0"
    table = settled.kubectl("get", "clusterversion", "version")
    assert "Cluster version is 1.0.0" in table
    # Deleted, it is made again, and what it said is found out again.
    settled.kubectl("delete", "clusterversion", "version")
    settled.wait_release("1.0.0")
    assert (
        settled.find("clusterversion", "version")["metadata"]["uid"] != version["metadata"]["uid"]
    )


def test_with_a_profile_that_nothing_is_for_no_success_is_claimed(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator
) -> None:
    releases.write("1.0.0", simple(cluster, "1.0.0"))
    run_cvo("1.0.0", "--cluster-profile=single-nod")
    seen = cluster.wait_condition("Failing", "True", "whose profile is single-nod")
    assert seen["reason"] == "NothingIncluded"
    assert cluster.condition("Available")["status"] == "False"
    assert not cluster.status().get("history")


def test_what_is_not_listed_not_known_or_not_named_is_refused(
    settled: Cluster, releases: Releases
) -> None:
    settled.ask(version="2.0.0")
    seen = refused(settled, "it cannot be reached from 1.0.0")
    assert "move to 1.1.0 or 1.0.1 instead" in seen["message"]
    settled.ask(version="2.0.0", force=True)
    settled.wait_observed()
    refused(settled, "it cannot be reached from 1.0.0")
    settled.ask(version="9.9.9")
    refused(settled, "choose one of: 2.0.0, 1.1.0, 1.0.1, 1.0.0")
    settled.ask(image="other:1")
    refused(settled, "spec.desiredUpdate.image: 'other:1': there is no such release in ")
    broken = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [\n"
    files = simple(settled, "1.0.2") | {"0000_10_broken_00.yaml": broken}
    releases.write("1.0.2", files, ["1.0.0"])
    settled.ask(version="1.0.2")
    settled.wait_condition("ReleaseAccepted", "False", "0000_10_broken_00.yaml:5")
    refused(settled, "nothing of it is applied")
    # Taken back, all is well again.
    settled.patch("clusterversion", "version", {"spec": {"desiredUpdate": None}})
    settled.wait_condition("ReleaseAccepted", "True", 'version="1.0.0"')
    assert len(settled.status()["history"]) == 1


def test_upgradeable_false_blocks_a_minor_update_and_allows_a_patch(settled: Cluster) -> None:
    settled.report("ingress", Upgradeable=("False", "old routes are in the way"))
    settled.wait_condition("Upgradeable", "False", "old routes are in the way")
    settled.ask(version="1.1.0")
    refused(settled, "a minor update from 1.0.0 is blocked: the cluster operator ingress")
    settled.ask(version="1.0.1")
    settled.wait_release("1.0.1")
    assert applied(settled) == "1.0.1"
    assert "old routes" in settled.status()["history"][0]["acceptedRisks"]
    assert eventually(lambda: settled.events("UpdateWithRisks"), "a warning")
    # When the operator is upgradeable again, the update that was asked for begins by itself.
    settled.ask(version="1.1.0")
    settled.wait_condition("ReleaseAccepted", "False", "a minor update from 1.0.1 is blocked")
    settled.report("ingress", Upgradeable=("True", ""))
    settled.wait_release("1.1.0")
    versions = [one["version"] for one in settled.status()["history"]]
    assert versions == ["1.1.0", "1.0.1", "1.0.0"]


def test_a_stale_operator_blocks(settled: Cluster) -> None:
    stale = verdict_message("all is well", "True", 1200)
    settled.report("ingress", Upgradeable=("True", ""), Available=("Unknown", stale))
    settled.wait_condition("Upgradeable", "False", "ingress no longer reports")
    settled.ask(version="1.1.0")
    refused(settled, "the cluster operator ingress no longer reports")
    settled.ask(version="1.1.0", force=True)
    settled.wait_release("1.1.0")
    assert "ingress" in settled.status()["history"][0]["acceptedRisks"]


def test_a_feature_set_without_upgrades_blocks(settled: Cluster) -> None:
    gates = {"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate"}
    spec = {"featureSet": "TechPreviewNoUpgrade"}
    settled.apply({**gates, "metadata": {"name": "cluster"}, "spec": spec})
    settled.wait_condition("Upgradeable", "False", "TechPreviewNoUpgrade, which cannot be left")
    settled.ask(version="1.1.0")
    refused(settled, "TechPreviewNoUpgrade")
    settled.ask(version="1.0.1")
    settled.wait_release("1.0.1")


def test_an_override_leaves_an_object_alone_and_blocks(settled: Cluster) -> None:
    mine = {
        "kind": "ConfigMap",
        "group": "",
        "namespace": settled.namespace,
        "name": "pilot",
        "unmanaged": True,
    }
    settled.patch("clusterversion", "version", {"spec": {"overrides": [mine]}})
    settled.wait_condition("Upgradeable", "False", f"ConfigMap {settled.namespace}/pilot unmanaged")
    settled.patch("configmap", "pilot", {"data": {"version": "mine"}})
    settled.ask(version="1.1.0")
    settled.wait_condition("ReleaseAccepted", "False", "spec.overrides has ConfigMap")
    settled.ask(version="1.0.1")
    settled.wait_release("1.0.1")
    assert applied(settled) == "mine"
    settled.patch("clusterversion", "version", {"spec": {"overrides": []}})
    eventually(lambda: applied(settled) == "1.0.1", "the object managed again")
    settled.wait_condition("Upgradeable", "True")


def test_a_release_that_cannot_be_read_applies_nothing_and_says_file_and_line(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator
) -> None:
    """It begins by itself when the release is repaired."""
    broken = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [\n"
    releases.write("1.0.0", simple(cluster, "1.0.0") | {"0000_30_late_00.yaml": broken})
    run_cvo()
    seen = cluster.wait_condition("Failing", "True", "0000_30_late_00.yaml:5")
    assert "RELEASE_VERSION: '1.0.0'" in seen["message"]
    assert cluster.condition("Available")["status"] == "False"
    assert cluster.condition("Progressing")["status"] == "False"
    assert not cluster.status().get("history")
    assert applied(cluster) == ""
    (releases.root / "1.0.0" / "0000_30_late_00.yaml").unlink()
    cluster.wait_condition("Failing", "True", "0000_30_late_00.yaml: not there, but listed")
    seal(releases.root / "1.0.0")
    cluster.wait_release("1.0.0")
    assert applied(cluster) == "1.0.0"
    assert cluster.condition("Failing")["status"] == "False"


def test_a_release_that_is_still_being_copied_is_refused_until_it_is_whole(
    settled: Cluster, releases: Releases
) -> None:
    """What is there of it parses; without its list nothing of it is applied."""
    releases.write("1.0.2", simple(settled, "1.0.2"), ["1.0.0"], sealed=False)
    settled.ask(version="1.0.2")
    seen = settled.wait_condition("ReleaseAccepted", "False", "RetrievePayload")
    assert "SHA256SUMS: missing" in seen["message"]
    assert applied(settled) == "1.0.0"
    seal(releases.root / "1.0.2")
    settled.wait_release("1.0.2")


def test_files_that_change_under_a_running_update_are_noticed_and_not_applied(
    settled: Cluster, releases: Releases
) -> None:
    """The update stands still until the release is whole again, and then goes on."""
    awaited = cluster_operator("silent", operator="0.0.1-snapshot")
    late = config_map("late", settled.namespace, version="1.0.4")
    files = {"0000_30_silent_00.json": counted(awaited), "0000_40_late_00.json": late}
    releases.write("1.0.4", simple(settled, "1.0.4") | files, ["1.0.0"])
    settled.ask(version="1.0.4")
    settled.wait_condition("Progressing", "True", "waiting on silent")
    file = releases.root / "1.0.4" / "0000_40_late_00.json"
    sealed = file.read_text()
    file.write_text(sealed.replace("1.0.4", "forged"))
    seen = settled.wait_condition("Failing", "True", "0000_40_late_00.json")
    assert seen["reason"] == "RetrievePayload"
    assert "status.desired: '1.0.4'" in seen["message"]
    # What the update waited for is there now; with the changed file it must not go on.
    well = [condition(kind, status) for kind, status in HEALTHY.items()]
    versions = [{"name": "operator", "version": "1.0.4"}]
    report = {"status": {"conditions": well, "versions": versions}}
    settled.patch("clusteroperator", "silent", report, subresource="status")
    settled.patch("clusterversion", "version", {"spec": {"channel": "looked-again"}})
    settled.wait_observed()
    assert settled.condition("Failing")["status"] == "True"
    assert settled.find("configmap", "late") is None
    file.write_text(sealed)
    settled.wait_release("1.0.4")
    assert settled.find("configmap", "late")["data"] == {"version": "1.0.4"}
    told = [(one["version"], one["state"]) for one in settled.status()["history"]]
    assert told == [("1.0.4", "Completed"), ("1.0.0", "Completed")]


def test_a_stuck_update_is_turned_back_to_what_was_completed_last(
    settled: Cluster, releases: Releases
) -> None:
    """1.0.0 lists nothing; it is of the same minor version, and was completed."""
    silent = cluster_operator("silent", operator="0.0.1-snapshot")
    stuck = simple(settled, "1.0.3") | {"0000_30_silent_00.json": counted(silent)}
    releases.write("1.0.3", stuck, ["1.0.0"])
    settled.ask(version="1.0.3")
    settled.wait_condition("Progressing", "True", "waiting on silent")
    assert applied(settled) == "1.0.3"
    settled.ask(version="2.0.0")
    seen = settled.wait_condition("ReleaseAccepted", "False", "it cannot be reached from 1.0.3")
    assert "move to 1.0.0, back to what was completed last, instead" in seen["message"]
    settled.ask(version="1.0.0")
    settled.wait_release("1.0.0")
    assert applied(settled) == "1.0.0"
    told = [(one["version"], one["state"]) for one in settled.status()["history"]]
    assert told == [("1.0.0", "Completed"), ("1.0.3", "Partial"), ("1.0.0", "Completed")]


@pytest.mark.slow
def test_a_release_that_takes_the_operators_own_rights_is_failing_and_names_the_way_back(
    settled: Cluster, releases: Releases, request: pytest.FixtureRequest
) -> None:
    """Its binding to another role cannot be changed, only deleted; all tests share its account."""
    request.addfinalizer(lambda: own_account(settled.plane, "cluster-version"))
    before = settled.find("clusterrolebinding", BINDING)
    taken = counted({**before, "metadata": {"name": BINDING}})
    taken["roleRef"] = before["roleRef"] | {"name": "view"}
    files = simple(settled, "1.0.5") | {"0000_30_rights_00.json": taken}
    releases.write("1.0.5", files, ["1.0.0"])
    settled.ask(version="1.0.5")
    seen = settled.wait_condition("Failing", "True", "OwnRightsLost")
    assert f"0000_30_rights_00.json: ClusterRoleBinding.{RBAC}/{BINDING}" in seen["message"]
    seen = settled.wait_condition("Progressing", "True", "Unable to apply 1.0.5")
    assert seen["reason"] == "OwnRightsLost"
    back = "it can be turned back: set spec.desiredUpdate.version to 1.0.0"
    assert seen["message"].endswith(back)
    assert [one["state"] for one in settled.status()["history"]] == ["Partial", "Completed"]
    now = settled.find("clusterrolebinding", BINDING)
    assert now["metadata"]["uid"] == before["metadata"]["uid"]
    # It still has its rights, and what the condition says is true.
    settled.ask(version="1.0.0")
    settled.wait_release("1.0.0")
    settled.wait_condition("Failing", "False")
    assert applied(settled) == "1.0.0"
