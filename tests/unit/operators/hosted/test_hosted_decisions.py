"""What a HostedCluster gets, decided without a server."""

import copy
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.places import DEPLOY

from quarterdeck.api.meta import Key, Object
from quarterdeck.controller import InvalidSpec
from quarterdeck.delivery.registry import installed
from quarterdeck.operators.cluster_version.log_level.config_file import level_in
from quarterdeck.operators.hosted.desired import (
    desired_binding,
    desired_config_map,
    desired_deployment,
    desired_namespace,
    kubeconfig_in,
    level_of,
    plan_plane,
)
from quarterdeck.operators.hosted.names import (
    UID_LABEL,
    check_namespace,
    control_plane_namespace,
    is_left_over,
    is_namespace_of,
    labels,
)
from quarterdeck.operators.hosted.release import checked_release, reads_config
from quarterdeck.operators.hosted.settings import Settings
from quarterdeck.operators.hosted.status import applied, available, desired_status, faulty_status

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MANAGER = "quarterdeck-hosted"
KEY = Key("clusters", "harbour")
UID = "6f1c2b0e-7a3d-4a52-9d58-3c1f0a9b7e11"


def cluster(name: str = "harbour", namespace: str = "clusters", **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "namespace": namespace, "generation": 3, "uid": UID},
        "spec": {"release": {"image": "registry.example.test/quarterdeck:0.1.0"}} | spec,
    }


def plane(**spec: Any) -> Object:
    """The HostedControlPlane of a cluster, as the server returns it."""
    made = desired_plane(cluster(**spec))
    made["metadata"]["uid"] = "1"
    return made


def desired_plane(cluster: Object, *, gate_on: bool = True) -> Object:
    """The HostedControlPlane of a cluster without a fault."""
    plan = plan_plane(cluster, None, gate_on=gate_on)
    assert not plan.faults
    return plan.plane


def namespace(uid: str = UID, owner: str = MANAGER, **more: Any) -> Object:
    """The namespace of the cluster of this uid, labelled by this manager."""
    made = desired_namespace(cluster() | {"metadata": cluster()["metadata"] | {"uid": uid}})
    fields: Object = {
        "f:metadata": {"f:labels": {f"f:{it}": {} for it in made["metadata"]["labels"]}}
    }
    entry = {"manager": owner, "operation": "Update", "fieldsV1": fields}
    made["metadata"] |= {"managedFields": [entry], **more}
    return made


def configured(level: Any) -> Object:
    return {"clusterVersionOperator": {"operatorLogLevel": level}}


def container(deployment: Object) -> Object:
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    made: Object = found
    return made


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (KEY, "clusters-harbour"),
        (Key("a", "b.c.d"), "a-b-c-d"),
        (Key("kube", "system"), "kube-system"),
    ],
)
def test_the_namespace_is_named_after_the_hosted_cluster(key: Key, name: str) -> None:
    assert control_plane_namespace(key) == name


def test_a_namespace_is_its_own_only_if_it_has_its_uid() -> None:
    """Whoever wrote to it since: the server forgets after ten managers who created it."""
    mine = cluster()
    assert is_namespace_of(namespace(), mine)
    assert is_namespace_of(namespace(managedFields=[]), mine)
    assert is_namespace_of(namespace(labels={UID_LABEL: UID}), mine)
    assert not is_namespace_of(namespace("another"), mine)
    assert not is_namespace_of(namespace(labels=labels(KEY)), mine)
    assert not is_namespace_of({"metadata": {"name": "clusters-harbour"}}, mine)


@pytest.mark.parametrize(
    ("found", "live", "left"),
    [
        pytest.param(namespace("earlier"), None, True, id="nobody needs it"),
        pytest.param(namespace("earlier"), cluster(), True, id="its successor has another uid"),
        pytest.param(namespace(), cluster(), False, id="in use"),
        pytest.param(namespace("earlier", owner="velero"), None, False, id="restored by others"),
        pytest.param(
            namespace("earlier", managedFields=[]), None, False, id="nobody knows by whom"
        ),
        pytest.param(
            namespace("earlier", labels={UID_LABEL: "earlier"}), None, False, id="of nobody"
        ),
    ],
)
def test_which_namespace_is_left_over(found: Object, live: Object | None, left: bool) -> None:
    assert is_left_over(found, KEY, live, MANAGER) is left


@pytest.mark.parametrize(
    ("name", "found", "why"),
    [
        pytest.param("x" * 63, None, "72 characters; choose", id="too long"),
        pytest.param("harbour", namespace("other"), f"not its own.*{UID_LABEL}={UID}", id="others"),
        pytest.param(
            "harbour", namespace(deletionTimestamp="2026-01-02T03:04:05Z"), "wait", id="going"
        ),
    ],
)
def test_a_namespace_that_cannot_be_had_is_refused(
    name: str, found: Object | None, why: str
) -> None:
    with pytest.raises(InvalidSpec, match=why):
        check_namespace(cluster(name), found)


def test_a_namespace_of_63_characters_is_fine() -> None:
    check_namespace(cluster("x" * 54), None)
    check_namespace(cluster(), namespace())


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ({"image": "quarterdeck:0.1.0"}, "0.1.0"),
        ({"image": "quarterdeck:0.1.0", "version": "0.2.0"}, "0.2.0"),
        ({"image": "r.example.test:5000/quarterdeck:1.2.3-rc.1_build"}, "1.2.3-rc.1+build"),
        ({"image": f"quarterdeck@sha256:{'a' * 64}", "version": "0.1.0"}, "0.1.0"),
    ],
)
def test_the_version_of_a_release(release: Object, version: str) -> None:
    assert checked_release({"release": release})[1] == version


@pytest.mark.parametrize(
    ("release", "field"),
    [
        ({}, "spec.release.image"),
        ({"image": 3}, "spec.release.image"),
        ({"image": "a\nb"}, "spec.release.image"),
        ({"image": "r.example.test:5000/quarterdeck"}, "spec.release.version"),
        ({"image": "quarterdeck:latest"}, "spec.release.version"),
        ({"image": "quarterdeck:0.1.0", "version": 1}, "spec.release.version"),
    ],
)
def test_a_release_without_image_or_version_is_refused(release: Object, field: str) -> None:
    with pytest.raises(InvalidSpec, match=field):
        checked_release({"release": release})


@pytest.mark.parametrize(
    ("version", "reads"),
    [("0.0.9", False), ("0.1.0-rc.1", True), ("0.1.0", True), ("0.2.0", True), ("none", False)],
)
def test_which_release_reads_a_configuration_file(version: str, reads: bool) -> None:
    assert reads_config(version) is reads


def test_a_plane_is_unset_where_the_cluster_is_or_the_gate_is_off() -> None:
    asking = cluster(operatorConfiguration=configured("Debug"))
    with_gate = desired_plane(asking)["spec"]["operatorConfiguration"]
    assert with_gate == configured("Debug")
    assert desired_plane(asking, gate_on=False)["spec"]["operatorConfiguration"] is None
    assert desired_plane(cluster())["spec"]["operatorConfiguration"] is None


def test_a_plane_gets_no_nulls() -> None:
    """The server drops them from a merge patch, so each look would find a difference."""
    asking = {"a": {"b": None, "c": [1, None, {"d": None, "e": 0}]}, "clusterVersionOperator": None}
    made = desired_plane(cluster(operatorConfiguration=asking))
    assert made["spec"]["operatorConfiguration"] == {"a": {"c": [1, {"e": 0}]}}


@pytest.mark.parametrize("level", ["Normal", "Debug", "Trace", "TraceAll", ""])
def test_the_file_is_what_the_hosted_operator_reads(level: str) -> None:
    """The writer and the reader of the file agree, also about a file that asks for nothing."""
    made = desired_config_map(plane(operatorConfiguration=configured(level)))
    (text,) = made["data"].values()
    assert yaml.safe_load(text) == {
        "apiVersion": "operator.openshift.io/v1alpha1",
        "kind": "ClusterVersionOperator",
        "metadata": {"name": "cluster"},
        "spec": {"operatorLogLevel": level},
    }
    assert level_in(text.encode()) == (level or "Normal")
    (unset,) = desired_config_map(plane())["data"].values()
    assert yaml.safe_load(unset)["spec"] == {}
    assert level_in(unset.encode()) == "Normal"


@pytest.mark.parametrize("level", ["Loud", "debug", 3, [], {"a": 1}, True, "Debug\nkind: X"])
def test_what_is_no_level_is_in_no_file(level: Any) -> None:
    plan = plan_plane(cluster(operatorConfiguration=configured(level)), None, gate_on=True)
    (fault,) = plan.faults
    assert re.search(r"operatorLogLevel: .*choose one of Normal, Debug", str(fault))
    assert plan.plane["spec"]["operatorConfiguration"] is None


NO_RELEASE: Object = {"release": {"image": "a b"}}


def test_what_is_invalid_keeps_its_last_value_and_all_else_goes_on() -> None:
    """The gate, and what is unset, count whatever else is wrong."""
    had = plane(operatorConfiguration=configured("Trace"))
    louder = cluster(**NO_RELEASE, operatorConfiguration=configured("Debug"))
    plan = plan_plane(louder, had, gate_on=True)
    assert plan.plane["spec"] == had["spec"] | {"operatorConfiguration": configured("Debug")}
    assert "spec.release.image: 'a b'" in str(plan.faults[0])
    off = plan_plane(louder, had, gate_on=False).plane["spec"]
    assert off == had["spec"] | {"operatorConfiguration": None}
    unset = plan_plane(cluster(**NO_RELEASE), had, gate_on=True).plane["spec"]
    assert unset["operatorConfiguration"] is None
    wrong = cluster(**NO_RELEASE, operatorConfiguration=configured("Loud"))
    kept = plan_plane(wrong, had, gate_on=True)
    assert kept.plane["spec"] == had["spec"]
    assert len(kept.faults) == 2
    assert plan_plane(wrong, had, gate_on=False).plane["spec"]["operatorConfiguration"] is None


def test_what_somebody_made_of_the_plane_is_no_last_value() -> None:
    spoilt: Object = {"spec": {"releaseImage": "a\nb", "operatorConfiguration": configured("Loud")}}
    wrong = cluster(**NO_RELEASE, operatorConfiguration=configured("Louder"))
    plan = plan_plane(wrong, spoilt, gate_on=True)
    assert plan.plane["spec"] == {"operatorConfiguration": None}
    assert not plan.knows_release
    assert plan_plane(cluster(), spoilt, gate_on=True).knows_release


@given(st.text())
def test_no_text_gets_past_the_levels(level: str) -> None:
    try:
        found = level_of(configured(level))
    except InvalidSpec:
        return
    assert found in ("", "Normal", "Debug", "Trace", "TraceAll")


def test_the_pod_has_no_token_of_the_management_cluster() -> None:
    made = desired_deployment(plane(), "c2VjcmV0", Settings())
    pod = made["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod
    kinds = [kind for volume in pod["volumes"] for kind in volume if kind != "name"]
    assert sorted(kinds) == ["configMap", "hostPath", "secret"]
    assert "c2VjcmV0" not in str(made)


def test_the_operator_is_started_for_the_hosted_cluster() -> None:
    made = container(desired_deployment(plane(), "x", Settings()))
    assert made["image"] == "registry.example.test/quarterdeck:0.1.0"
    assert {"name": "RELEASE_VERSION", "value": "0.1.0"} in made["env"]
    config = "/etc/quarterdeck/hosted/cluster-version-operator-config/config.yaml"
    for arg in (
        "--operator=cluster-version",
        "--leader-elect",
        "--lease-namespace=kube-system",
        "--cluster-profile=hypershift",
        "--releases=/releases",
        f"--config={config}",
    ):
        assert arg in made["args"]
    mounted = {mount["mountPath"] for mount in made["volumeMounts"]}
    assert config.rpartition("/")[0] in mounted


def test_the_pods_are_not_taken_for_those_of_this_cluster() -> None:
    """Their metrics, and so the alerts about them, are about another cluster."""
    made = desired_deployment(plane(), "x", Settings())
    has = made["spec"]["template"]["metadata"]["labels"]
    path = DEPLOY / "monitoring" / "files" / "prometheus.yaml"
    jobs = yaml.safe_load(path.read_text())["scrape_configs"]
    for job in jobs:
        ((selector,),) = (found["selectors"] for found in job["kubernetes_sd_configs"])
        key, _, value = selector["label"].partition("=")
        assert key not in has or has[key] != (value or has[key])
    assert made["spec"]["selector"]["matchLabels"].items() <= has.items()


def test_an_older_release_is_started_without_the_file() -> None:
    old = plane(release={"image": "quarterdeck:0.0.9"})
    made = desired_deployment(old, "x", Settings(hosted_releases=""))
    assert not any(arg.startswith(("--config", "--releases")) for arg in container(made)["args"])
    (volume,) = made["spec"]["template"]["spec"]["volumes"]
    assert "secret" in volume


def test_a_new_level_replaces_no_pod_but_a_new_kubeconfig_does() -> None:
    before = desired_deployment(plane(), "x", Settings())
    louder = plane(operatorConfiguration=configured("Trace"))
    assert desired_deployment(louder, "x", Settings()) == before
    assert desired_deployment(plane(), "y", Settings()) != before


def test_the_binding_is_of_the_delivered_role_to_the_delivered_account() -> None:
    declared = installed().operators["hosted"]
    operator = Key(declared.namespace, declared.account)
    made = desired_binding(KEY, operator, declared.field_manager)
    (rule,) = declared.rights
    assert (made["roleRef"]["name"],) == rule.names
    assert made["metadata"]["namespace"] == "clusters-harbour"
    (subject,) = made["subjects"]
    assert (subject["namespace"], subject["name"]) == operator


@pytest.mark.parametrize(
    ("secret", "found"),
    [
        (None, None),
        ({}, None),
        ({"data": {"other": "eA=="}}, None),
        ({"data": {"kubeconfig": ""}}, None),
        ({"data": {"kubeconfig": "eA=="}}, "eA=="),
    ],
)
def test_the_kubeconfig_of_a_secret(secret: Object | None, found: str | None) -> None:
    assert kubeconfig_in(secret) == found


def test_the_status_keeps_what_others_wrote() -> None:
    told = {"type": "Theirs", "status": "True", "reason": "X", "message": ""}
    told["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    obj = cluster() | {"status": {"version": {"x": 1}, "conditions": [told]}}
    made = desired_status(obj, [available(None)], NOW)
    assert made["version"] == {"x": 1}
    assert made["observedGeneration"] == 3
    assert [one["type"] for one in made["conditions"]] == ["Theirs", "Available"]
    again = copy.deepcopy(obj) | {"status": json.loads(json.dumps(made))}
    assert desired_status(again, [available(None)], NOW.replace(hour=9)) == made
    faulty = faulty_status(again, "InvalidSpec", "no", NOW)
    assert faulty["conditions"][-1]["status"] == "False"


@pytest.mark.parametrize(
    ("status", "holds"),
    [
        ({}, "False"),
        ({"replicas": 2, "updatedReplicas": 2}, "False"),
        ({"availableReplicas": 1}, "True"),
    ],
)
def test_one_available_replica_is_enough(status: Object, holds: str) -> None:
    deployment = {"metadata": {"generation": 1}, "spec": {"replicas": 2}, "status": status}
    assert available(deployment).status == holds


def test_why_there_is_no_replica_is_told_when_there_is_no_progress() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "q"}
    going: Object = {"type": "Progressing", "status": "True"}
    deployment: Object = {
        "metadata": {"generation": 1},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 1, "conditions": [failure, going]},
    }
    assert "yet" in available(deployment).message
    going["status"] = "False"
    assert "FailedCreate: q" in available(deployment).message


@pytest.mark.parametrize(
    ("gate_on", "release", "reason"),
    [
        (True, "0.1.0", "AsExpected"),
        (False, "0.1.0", "FeatureGateOff"),
        (False, "0.0.9", "FeatureGateOff"),
        (True, "0.0.9", "ReleaseTooOld"),
    ],
)
def test_whether_the_configuration_is_applied(gate_on: bool, release: str, reason: str) -> None:
    said = applied(gate_on=gate_on, gates_version="0.1.0", release=release)
    assert said.reason == reason
    assert bool(said.message) is (said.status == "False")
