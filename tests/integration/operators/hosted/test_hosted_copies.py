"""What a HostedCluster gets: copied, kept as it is, refused, removed."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.integration.operators.hosted.management import (
    HC,
    HCP,
    SIMULATED,
    Management,
    configuration,
    hosted_cluster,
)

from quarterdeck.api.meta import Object
from quarterdeck.operators.hosted.desired import desired_namespace
from quarterdeck.operators.hosted.names import (
    CONFIG_MAP,
    DEPLOYMENT,
    FINALIZER,
    KUBECONFIG,
    NAME_LABEL,
)
from quarterdeck.testing.fault_proxy import FaultProxy, Hold, Late
from quarterdeck.testing.operator_process import OwnOperators, StartOperator
from quarterdeck.testing.waiting import eventually, until

FIRST, SECOND = "current-context: first\n", "current-context: second\n"
BINDING = "quarterdeck-hosted-control-plane"
TOKEN = "automountServiceAccountToken"
UNLABELLED: Object = {"metadata": {"labels": None}}
OTHER: Object = {"name": "operator", "image": "example.test/other:1", "args": ["--config=/x"]}
VALID, APPLIED, AVAILABLE = "ValidConfiguration", "OperatorConfigurationApplied", "Available"


def proxied(proxy: FaultProxy, account: Path, directory: Path) -> Path:
    """The kubeconfig of the operator's account, by way of the proxy."""
    token: str = yaml.safe_load(account.read_text())["users"][0]["user"]["token"]
    return proxy.write_kubeconfig(directory / "proxied.kubeconfig", token)


def test_a_level_goes_all_the_way_and_back(
    management: Management, run_hosted: StartOperator
) -> None:
    """Unset is unset at each step; what this project does not know is copied too."""
    run_hosted()
    management.add("harbour", unknown={"kept": [1, {"two": None}]})
    management.wait_condition("harbour", AVAILABLE, "True")
    assert management.copied("harbour") is None
    management.wait_level("harbour", None)
    assert management.condition("harbour", VALID)["status"] == "True"
    assert management.condition("harbour", APPLIED)["status"] == "True"
    more = {**configuration("Debug"), "clusterNetworkOperator": {"mtu": 1400}}
    management.configure("harbour", more)
    management.wait_copied("harbour", more)
    management.wait_level("harbour", "Debug")
    management.configure("harbour", {"clusterNetworkOperator": {"mtu": 1500}})
    management.wait_copied("harbour", {"clusterNetworkOperator": {"mtu": 1500}})
    management.wait_level("harbour", None)
    management.configure("harbour", {"clusterVersionOperator": {}})
    management.wait_level("harbour", "Normal")
    management.configure("harbour", None)
    management.wait_level("harbour", None)
    assert management.copied("harbour") is None
    kept = management.objects.get(HC, "harbour")
    assert kept["spec"]["unknown"]["kept"][0] == 1


BY_HAND: list[tuple[str, str, Object]] = [
    (HCP, "harbour", {"spec": {"operatorConfiguration": configuration("Trace")}}),
    (HCP, "harbour", {"spec": {"operatorConfiguration": {"added": {"x": 1}}}}),
    (HCP, "harbour", {"spec": {"operatorConfiguration": None, "releaseImage": "x:1"}}),
    (HCP, "harbour", UNLABELLED),
    ("configmap", CONFIG_MAP, {"data": None}),
    ("configmap", CONFIG_MAP, {"data": {"config.yaml": "spec: {operatorLogLevel: Trace}"}}),
    ("configmap", CONFIG_MAP, UNLABELLED),
    ("secret", KUBECONFIG, {"data": {"kubeconfig": "dXNlcnM6IFtdCg=="}}),
    ("secret", KUBECONFIG, {"data": None}),
    ("secret", KUBECONFIG, UNLABELLED),
    ("deployment", DEPLOYMENT, {"spec": {"replicas": 0}}),
    ("deployment", DEPLOYMENT, {"spec": {"template": {"spec": {"containers": [OTHER]}}}}),
    ("deployment", DEPLOYMENT, {"spec": {"template": {"spec": {TOKEN: True}}}}),
    ("deployment", DEPLOYMENT, {"spec": {"template": {"metadata": {"annotations": None}}}}),
    ("deployment", DEPLOYMENT, UNLABELLED),
    ("rolebinding", BINDING, {"subjects": None}),
    ("rolebinding", BINDING, UNLABELLED),
]
"""What somebody writes into what the operator made: each is undone."""
MADE = [
    (HCP, "harbour"),
    ("configmap", CONFIG_MAP),
    ("secret", KUBECONFIG),
    ("deployment", DEPLOYMENT),
    ("rolebinding", BINDING),
]


def test_what_somebody_changes_by_hand_is_healed(
    management: Management, run_hosted: StartOperator
) -> None:
    """By an edit, and by a deletion, of each object."""
    run_hosted()
    management.add("harbour", operatorConfiguration=configuration("Debug"))
    management.wait_condition("harbour", AVAILABLE, "True")
    place, objects = management.place("harbour"), management.objects

    def content() -> dict[str, Any]:
        """All that an administrator can see of it but who wrote what when."""
        found = {kind: objects.find(kind, name, namespace=place) or {} for kind, name in MADE}
        for it in found.values():
            it.pop("status", None)
            for field in ("apiVersion", "kind"):
                it.pop(field, None)
            meta = it.pop("metadata", {})
            it["labels"] = {k: v for k, v in meta.get("labels", {}).items() if "quarterdeck" in k}
        return found

    wanted = content()
    for kind, name, patch in BY_HAND:
        objects.patch(kind, name, patch, namespace=place)
        until(content, lambda it: it == wanted, f"{patch} of {kind} is healed")
    for kind, name in MADE:
        objects.delete(kind, name, namespace=place)
        until(content, lambda it: it == wanted, f"{kind} is there again")
    objects.patch("namespace", place, {"metadata": {"labels": {NAME_LABEL: None}}})
    until(
        lambda: objects.get("namespace", place)["metadata"]["labels"],
        lambda it: it.get(NAME_LABEL) == "harbour",
        "its namespace has its labels",
    )
    management.configure("harbour", None)
    management.wait_level("harbour", None)
    trace = {"spec": {"operatorConfiguration": configuration("Trace")}}
    objects.patch(HCP, "harbour", trace, namespace=place)
    management.wait_copied("harbour", None)


def test_with_the_gate_off_nothing_is_copied_and_what_was_is_removed(
    management: Management, run_hosted: StartOperator
) -> None:
    """Off, on, off, for another version only, and without the resource's object."""
    management.set_gate(on=False)
    run_hosted()
    management.add("harbour", operatorConfiguration=configuration("Trace"))
    management.wait_condition("harbour", AVAILABLE, "True")
    told = management.condition("harbour", APPLIED)
    assert (told["status"], told["reason"]) == ("False", "FeatureGateOff")
    assert management.copied("harbour") is None
    management.wait_level("harbour", None)
    before = management.deployment("harbour")["metadata"]["generation"]

    management.set_gate(on=True)
    management.wait_level("harbour", "Trace")
    management.wait_condition("harbour", APPLIED, "True")
    for turn_off in (
        lambda: management.set_gate(on=False),
        lambda: management.set_gate(on=True, version="9.9.9"),
        lambda: management.objects.delete("featuregate", "cluster"),
    ):
        management.set_gate(on=True)
        management.wait_level("harbour", "Trace")
        turn_off()
        management.wait_level("harbour", None)
        assert management.copied("harbour") is None
        management.wait_condition("harbour", APPLIED, "False", "FeatureGateOff")
    after = management.deployment("harbour")["metadata"]["generation"]
    assert after == before, "no pod is replaced for a level"


def test_the_kubeconfig_is_copied_kept_in_step_and_removed(
    management: Management, run_hosted: StartOperator
) -> None:
    run_hosted()
    management.objects.delete("secret", "kubeconfig")
    management.add("harbour")
    management.wait_condition("harbour", VALID, "False", "spec.kubeconfigSecret.name: 'kubeconfig'")
    assert management.condition("harbour", AVAILABLE)["reason"] == "NoKubeconfig"
    management.add_kubeconfig(FIRST)
    management.wait_condition("harbour", AVAILABLE, "True")
    management.wait_condition("harbour", VALID, "True")
    assert management.kubeconfig("harbour") == FIRST
    pods = management.deployment("harbour")["spec"]["template"]
    management.add_kubeconfig(SECOND)
    until(lambda: management.kubeconfig("harbour"), lambda it: it == SECOND, "the new one")
    until(
        lambda: management.deployment("harbour")["spec"]["template"],
        lambda it: it != pods,
        "pods that read it",
    )
    management.objects.delete("secret", "kubeconfig")
    until(lambda: management.kubeconfig("harbour"), lambda it: it is None, "no copy")
    management.wait_condition("harbour", VALID, "False", "with the key kubeconfig")
    assert management.deployment("harbour") is None


def test_a_kubeconfig_that_runs_a_program_gets_no_pod(
    management: Management, run_hosted: StartOperator
) -> None:
    """Whoever may write a Secret may not therefore run programs; what ran before is removed."""
    run_hosted()
    management.add("harbour")
    management.wait_condition("harbour", AVAILABLE, "True")
    management.add_kubeconfig("users: [{name: a, user: {exec: {command: secret-word}}}]")
    told = management.wait_condition("harbour", VALID, "False", "users[0].user.exec")
    assert "secret-word" not in str(told)
    assert management.kubeconfig("harbour") is None
    assert management.deployment("harbour") is None
    management.add_kubeconfig(FIRST)
    management.wait_condition("harbour", VALID, "True")
    management.wait_condition("harbour", AVAILABLE, "True")


INVALID_RELEASES: list[tuple[Any, str]] = [
    ({"image": "a b"}, "spec.release.image: 'a b'"),
    ({"image": "quarterdeck"}, "spec.release.version: ''"),
    ({"image": "q:1", "version": "one"}, "spec.release.version: 'one'"),
]


def test_an_invalid_release_is_refused_on_the_object(
    management: Management, run_hosted: StartOperator
) -> None:
    run_hosted()
    for release, field in INVALID_RELEASES:
        management.add("harbour", release=release)
        management.wait_condition("harbour", VALID, "False", field)
        assert management.objects.find("namespace", management.place("harbour")) is None
    management.add("harbour", release={"image": SIMULATED})
    management.wait_condition("harbour", AVAILABLE, "True")
    management.wait_condition("harbour", VALID, "True")


def test_a_namespace_that_is_not_its_own_is_never_touched(
    management: Management, run_hosted: StartOperator
) -> None:
    """Of others, with our labels by hand, of another HostedCluster, too long: refused."""
    run_hosted()
    objects = management.objects
    for namespace in ("kube", f"{management.namespace}-a"):
        objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    objects.apply(hosted_cluster("system", "kube"))
    labelled = {
        "quarterdeck.dev/hosted-cluster-namespace": management.namespace,
        "quarterdeck.dev/hosted-cluster-name": "taken",
    }
    metadata = {"name": management.place("taken"), "labels": labelled}
    objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    management.add("taken")
    management.add("x" * 63)
    management.add("a-b")
    management.wait_condition("a-b", AVAILABLE, "True")
    # Both would have the namespace that `a-b` has already.
    management.add("a.b")
    objects.apply(hosted_cluster("b", f"{management.namespace}-a"))
    versions = {
        name: objects.get("namespace", name)["metadata"]["resourceVersion"]
        for name in ("kube-system", management.place("taken"), management.place("a-b"))
    }
    elsewhere = {"system": Management(management.plane, "kube")}
    elsewhere["b"] = Management(management.plane, f"{management.namespace}-a")
    for name in ("taken", "a.b", "system", "b"):
        where = elsewhere.get(name, management)
        where.wait_condition(name, VALID, "False", "which exists and is not its own")
    management.wait_condition("x" * 63, VALID, "False", "characters; choose")
    for name in ("taken", "a.b", "system", "b"):
        where = elsewhere.get(name, management)
        assert FINALIZER not in where.objects.get(HC, name)["metadata"].get("finalizers", [])
        where.objects.delete(HC, name)
        where.wait_gone(name)
    for name, version in versions.items():
        assert objects.get("namespace", name)["metadata"]["resourceVersion"] == version
    assert management.condition("a-b", AVAILABLE)["status"] == "True"
    # When the namespace is free, the other one gets it by itself.
    management.add("a.b")
    management.wait_condition("a.b", VALID, "False", "not its own")
    objects.delete(HC, "a-b")
    management.wait_condition("a.b", AVAILABLE, "True")


def test_a_namespace_that_somebody_makes_in_between_is_not_taken(
    management: Management,
    account: Path,
    own_operators: OwnOperators,
    fault_proxy: FaultProxy,
    tmp_path: Path,
) -> None:
    """After the look at the namespaces, and before the write: the deletion must not remove it."""
    objects, hold = management.objects, Hold()
    path = proxied(fault_proxy, account, tmp_path)
    own_operators(management.plane, "hosted", "--hosted-releases=", account=path)()
    # With the same kubeconfig: the operator does not have to wait for it any more.
    management.add("other")
    management.wait_condition("other", AVAILABLE, "True")
    fault_proxy.inject(hold, verb="patch", resource="hostedclusters")
    management.add("harbour")
    eventually(hold.held.is_set, "the finalizer is being written")
    for name in ("harbour", "marker"):
        metadata = {"name": management.place(name)}
        objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    # When the operator knows of the second namespace, it knows of the first.
    management.add("marker")
    management.wait_condition("marker", VALID, "False", "not its own")
    hold.let_go.set()
    management.wait_condition("harbour", VALID, "False", "not its own")
    objects.delete(HC, "harbour")
    management.wait_gone("harbour")
    found = objects.get("namespace", management.place("harbour"))["metadata"]
    assert NAME_LABEL not in found.get("labels", {})
    assert "deletionTimestamp" not in found


def make_namespace(management: Management, name: str, manager: str) -> None:
    """Create the namespace of a HostedCluster that is gone, as this field manager."""
    gone = hosted_cluster(name, management.namespace)
    gone["metadata"]["uid"] = "5a9d3e0c-0000-4000-8000-000000000000"
    body = {"apiVersion": "v1", "kind": "Namespace", **desired_namespace(gone)}
    path = f"/api/v1/namespaces?fieldManager={manager}"
    answer = management.plane.requests().send("POST", path, json.dumps(body).encode())
    assert answer.ok, answer.body


STEPS = [
    ("patch", "hostedclusters"),
    ("create", "namespaces"),
    ("create", "rolebindings"),
    ("create", "hostedcontrolplanes"),
    ("create", "configmaps"),
    ("create", "secrets"),
    ("create", "deployments"),
    ("patch", "hostedcontrolplanes/status"),
    ("patch", "hostedclusters/status"),
]
LONG = 300.0
"""Seconds for which an answer does not come: more than the operator lives."""
CLEANING_UP = [("delete", "namespaces"), ("patch", "hostedclusters")]


@pytest.mark.slow
def test_killed_after_each_of_its_writes_it_ends_where_it_would_have(
    management: Management,
    account: Path,
    own_operators: OwnOperators,
    fault_proxy: FaultProxy,
    tmp_path: Path,
) -> None:
    """The server has the write, the operator no answer; the next process continues.

    One write arrives after its HostedCluster is gone: the namespace that it makes goes too.
    """
    objects, proxy = management.objects, fault_proxy
    make_namespace(management, "late", "quarterdeck-hosted")
    make_namespace(management, "restored", "velero")
    path = proxied(proxy, account, tmp_path)
    start = own_operators(management.plane, "hosted", "--hosted-releases=", account=path)

    def kill_at(verb: str, resource: str) -> None:
        proxy.clear()
        proxy.forget()
        proxy.inject(Late(LONG), verb=verb, resource=resource, times=None)
        process = start()
        eventually(lambda: proxy.count(verb=verb, resource=resource), f"{verb} {resource}")
        process.kill()

    management.add("other")
    management.add("harbour", operatorConfiguration=configuration("Debug"))
    for step in STEPS:
        kill_at(*step)
    proxy.clear()
    process = start()
    management.wait_condition("harbour", AVAILABLE, "True")
    management.wait_condition("other", AVAILABLE, "True")
    management.wait_level("harbour", "Debug")
    other = management.deployment("other")["metadata"]["uid"]
    process.kill()

    objects.delete(HC, "harbour")
    for step in CLEANING_UP:
        kill_at(*step)
    proxy.clear()
    start()
    management.wait_gone("harbour")
    assert objects.find("namespace", management.place("harbour")) is None
    # Nothing else went with it.
    assert objects.find("secret", "kubeconfig")
    assert management.deployment("other")["metadata"]["uid"] == other
    assert management.condition("other", AVAILABLE)["status"] == "True"
    late = management.place("late")
    eventually(lambda: objects.find("namespace", late) is None, "the late namespace is gone", 90)
    assert "deletionTimestamp" not in objects.get("namespace", management.place("restored"))
