"""What is no longer allowed goes, whatever else is wrong with a HostedCluster or its namespace."""

import json
from typing import Any

from tests.integration.operators.hosted.management import (
    HC,
    SIMULATED,
    Management,
    configuration,
    hosted_cluster,
)

from quarterdeck.api.meta import Object
from quarterdeck.operators.hosted.names import UID_LABEL
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually, until

VALID, AVAILABLE = "ValidConfiguration", "Available"
WRONG = "spec.release.image: 'a b'"
MANAGERS = 14
"""More than the ten of which the server keeps the entries."""


def owners(namespace: Object) -> list[str]:
    """The field managers that own something in a namespace."""
    return [entry["manager"] for entry in namespace["metadata"]["managedFields"]]


def image_of(deployment: Any) -> str:
    """The image in a Deployment; empty if there is none."""
    return str(
        deployment["spec"]["template"]["spec"]["containers"][0]["image"] if deployment else ""
    )


def test_an_invalid_hosted_cluster_loses_what_is_no_longer_allowed(
    management: Management, run_hosted: StartOperator
) -> None:
    """Its release is no image: the gate, the level and the Secret count as ever."""
    operator = run_hosted()
    management.add("harbour", operatorConfiguration=configuration("Trace"))
    management.wait_condition("harbour", AVAILABLE, "True")
    management.wait_level("harbour", "Trace")

    def set_image(image: str) -> None:
        management.objects.patch(HC, "harbour", {"spec": {"release": {"image": image}}})

    set_image("a b")
    management.wait_condition("harbour", VALID, "False", WRONG)
    assert image_of(management.deployment("harbour")) == SIMULATED
    assert management.copied("harbour") == configuration("Trace")

    management.set_gate(on=False)
    management.wait_level("harbour", None)
    assert management.copied("harbour") is None
    management.wait_condition("harbour", "OperatorConfigurationApplied", "False", "FeatureGateOff")
    management.set_gate(on=True)
    management.wait_level("harbour", "Trace")
    management.set_level("harbour", "Debug")
    management.wait_level("harbour", "Debug")

    management.objects.delete("secret", "kubeconfig")
    until(lambda: management.kubeconfig("harbour"), lambda it: it is None, "no copy")
    eventually(lambda: management.deployment("harbour") is None, "no Deployment")
    management.wait_condition("harbour", VALID, "False", WRONG)
    management.add_kubeconfig()
    until(
        lambda: image_of(management.deployment("harbour")),
        lambda it: it == SIMULATED,
        "the Deployment of the last valid release",
    )

    # While nobody looks: the next process finds the same.
    operator.kill()
    management.set_gate(on=False)
    management.add_kubeconfig("users: [{user: {exec: {command: sh}}}]")
    run_hosted()
    management.wait_level("harbour", None)
    assert management.copied("harbour") is None
    until(lambda: management.kubeconfig("harbour"), lambda it: it is None, "no copy")
    eventually(lambda: management.deployment("harbour") is None, "no Deployment")

    management.add_kubeconfig()
    set_image(SIMULATED)
    management.wait_condition("harbour", VALID, "True")
    management.wait_condition("harbour", AVAILABLE, "True")


def test_a_namespace_stays_its_own_whoever_else_writes_to_it(
    management: Management, run_hosted: StartOperator
) -> None:
    """The server forgets who created it; the HostedCluster's uid in it says whose it is."""
    first = run_hosted()
    management.add("harbour")
    management.wait_condition("harbour", AVAILABLE, "True")
    first.kill()  # It would apply its labels again, and an apply is not forgotten.
    # Of entries of the same second, the server joins the first by name.
    place, requests = management.place("harbour"), management.plane.requests()
    for number in range(MANAGERS):
        patch = {"metadata": {"annotations": {f"example.test/{number}": "x"}}}
        answer = requests.send(
            "PATCH",
            f"/api/v1/namespaces/{place}?fieldManager=z-{number}",
            json.dumps(patch).encode(),
            "application/merge-patch+json",
        )
        assert answer.ok
    namespace = management.objects.get("namespace", place)
    assert "ancient-changes" in owners(namespace)
    assert "quarterdeck-hosted" not in owners(namespace)
    run_hosted()
    management.set_level("harbour", "Debug")
    management.wait_level("harbour", "Debug")
    assert management.condition("harbour", VALID)["status"] == "True"
    management.objects.delete(HC, "harbour")
    management.wait_gone("harbour")
    assert management.objects.find("namespace", place) is None


def test_a_namespace_of_an_earlier_hosted_cluster_is_given_by_its_label_only(
    management: Management, run_hosted: StartOperator
) -> None:
    """Somebody removed the finalizer: what was made stays, until an administrator decides."""
    process = run_hosted()
    objects = management.objects
    management.add("harbour", operatorConfiguration=configuration("Trace"))
    management.wait_condition("harbour", AVAILABLE, "True")
    process.kill()
    objects.delete(HC, "harbour")
    objects.patch(HC, "harbour", {"metadata": {"finalizers": None}})
    management.wait_gone("harbour")
    place = management.place("harbour")
    management.add("harbour")
    uid = objects.get(HC, "harbour")["metadata"]["uid"]
    before = objects.get("namespace", place)["metadata"]["resourceVersion"]
    run_hosted()
    told = management.wait_condition("harbour", VALID, "False", "is not its own")
    assert f"{UID_LABEL}={uid}" in told["message"]
    assert objects.get("namespace", place)["metadata"]["resourceVersion"] == before
    assert management.copied("harbour") == configuration("Trace")
    # As the message says.
    objects.patch("namespace", place, {"metadata": {"labels": {UID_LABEL: uid}}})
    management.wait_condition("harbour", VALID, "True")
    management.wait_level("harbour", None)
    # Taken away again, it is not deleted.
    objects.patch("namespace", place, {"metadata": {"labels": {UID_LABEL: None}}})
    management.wait_condition("harbour", VALID, "False", "is not its own")
    objects.delete(HC, "harbour")
    management.wait_gone("harbour")
    assert "deletionTimestamp" not in objects.get("namespace", place)["metadata"]


def test_one_of_two_that_want_a_namespace_at_once_gets_it(
    management: Management, run_hosted: StartOperator
) -> None:
    """The other one is refused, has nothing in it, and takes nothing along."""
    for name in ("a-b", "a.b"):
        management.objects.apply(hosted_cluster(name, management.namespace))
    run_hosted()
    by_name = until(
        lambda: {it: management.condition(it, VALID) for it in ("a-b", "a.b")},
        lambda it: sorted(one["status"] for one in it.values()) == ["False", "True"],
        "one of them is valid",
    )
    (winner,) = (name for name, it in by_name.items() if it["status"] == "True")
    (loser,) = by_name.keys() - {winner}
    assert "is not its own" in by_name[loser]["message"]
    management.wait_condition(winner, AVAILABLE, "True")
    place = management.place("a-b")
    planes = management.objects.list("hostedcontrolplane", namespace=place)
    assert [it["metadata"]["name"] for it in planes] == [winner]
    management.objects.delete(HC, loser)
    management.wait_gone(loser)
    assert "deletionTimestamp" not in management.objects.get("namespace", place)["metadata"]
    assert management.condition(winner, AVAILABLE)["status"] == "True"


def test_a_binding_to_another_role_is_reported_until_it_is_gone(
    management: Management, run_hosted: StartOperator
) -> None:
    """Somebody puts one of our name into the namespace: a binding's role cannot be changed."""
    process = run_hosted()
    objects = management.objects
    management.add("harbour")
    management.wait_condition("harbour", AVAILABLE, "True")
    process.kill()
    place, name = management.place("harbour"), "quarterdeck-hosted-control-plane"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": place},
        "roleRef": role,
    }
    objects.delete("rolebinding", name, namespace=place)
    objects.apply(binding)
    run_hosted()
    management.wait_condition("harbour", VALID, "False", "roleRef")
    objects.delete("rolebinding", name, namespace=place)
    management.set_level("harbour", "Debug")
    management.wait_level("harbour", "Debug")
    management.wait_condition("harbour", VALID, "True")
