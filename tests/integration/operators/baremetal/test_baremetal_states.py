"""The states of the baremetal operator that others cause: deletions, refusals, missing objects."""

import json

import pytest
from tests.integration.operators.baremetal.conftest import B, Proxied
from tests.integration.operators.baremetal.metal import LIMIT, PROVISIONING, Metal

from quarterdeck.metal3.names import NAMESPACE, PASSWORD_SECRET
from quarterdeck.metal3.state import REMEDY
from quarterdeck.testing.fault_proxy import Answer
from quarterdeck.testing.operator_process import OwnOperators, StartOperator, own_account
from quarterdeck.testing.waiting import eventually

DENIED = Answer(403, reason="Forbidden")


def test_it_answers_the_challenge_in_the_remaining_states(
    metal: Metal, run_baremetal: StartOperator, proxied: Proxied
) -> None:
    """While it rolls out, without images, without a password, and while a write is refused."""
    proxy, through_proxy = proxied("baremetal")
    metal.set_platform("BareMetal")
    metal.plane.kubectl("cordon", "simulated")
    try:
        metal.provision()
        run_baremetal(through_proxy)
        metal.wait({"Progressing": "SyncingResources", "Degraded": "False"})
        metal.challenge()
    finally:
        metal.plane.kubectl("uncordon", "simulated")
    metal.wait_running()
    running = metal.print()

    metal.objects.delete("configmap", "cluster-baremetal-operator-images")
    metal.wait({"Degraded": "ImagesMissing", "Progressing": "True"})
    metal.challenge()
    metal.deliver()
    metal.wait_running()

    # A Secret that somebody emptied is not written again: it is not known what used it.
    secret = {"data": {"password": None}}
    password = metal.objects.get("secret", PASSWORD_SECRET)["data"]["password"]
    metal.objects.patch("secret", PASSWORD_SECRET, secret)
    metal.wait({"Degraded": "PasswordMissing", "Progressing": "True"})
    assert "delete the Secret" in metal.conditions()["Degraded"][2]
    metal.challenge()
    metal.objects.patch("secret", PASSWORD_SECRET, {"data": {"password": password}})
    metal.wait_running()
    assert metal.print() == running

    # A status that may not be written holds nothing up; a Deployment that may not be, does.
    proxy.inject(DENIED, verb="patch", resource="provisionings/status", times=None)
    proxy.inject(DENIED, verb="patch", resource="deployments", times=None)
    metal.provision(provisioningIP="172.30.20.4")
    metal.wait({"Degraded": "SyncingFailed", "Progressing": "True"})
    assert "deployments" in metal.conditions()["Degraded"][2]
    metal.challenge()
    proxy.clear()
    metal.wait_running()
    eventually(lambda: metal.told() == ("True", "AsExpected", "", True), "its status is written")


def test_a_removed_right_is_named_with_what_to_do_and_its_return_heals(
    metal: Metal, run_baremetal: StartOperator, own_operators: OwnOperators, proxied: Proxied
) -> None:
    """The API server itself refuses to read: nothing is written meanwhile, and metal3 runs on."""
    proxy, through_proxy = proxied("baremetal")
    metal.set_platform("BareMetal")
    metal.provision()
    run_baremetal(through_proxy, "--watch-grace-period=1")
    metal.wait_running()
    running = metal.print()

    # One operator loses a right while it runs; a watch that is open goes on until it is cut.
    remove_right(metal, "role", "quarterdeck-baremetal", "secrets", PASSWORD_SECRET)
    proxy.cut_now()
    # The other one starts without a right.
    account = own_account(metal.plane, "machine-api")
    remove_right(metal, "clusterrole", "quarterdeck-machine-api", "clusteroperators", "baremetal")
    own_operators(metal.plane, "machine-api", account=account)(B, "--watch-grace-period=1")
    lacking = {"baremetal": "secrets", "machine-api": "clusteroperators"}
    for operator, resource in lacking.items():
        metal.wait({"Degraded": "CannotRead"}, operator)
        message = metal.conditions(operator)["Degraded"][2]
        assert f'"{resource}"' in message
        assert message.endswith(REMEDY)
        metal.challenge(operator)
    assert metal.print() == running

    for operator in lacking:
        own_account(metal.plane, operator)
    metal.wait_running()
    metal.wait({"Available": "StandingDown", "Degraded": "False"}, "machine-api")
    assert metal.print() == running


def remove_right(metal: Metal, kind: str, role: str, resource: str, name: str) -> None:
    """Take the rules about one object out of a role."""
    rules = metal.objects.get(kind, role)["rules"]
    kept = [
        one for one in rules if one["resources"] != [resource] or one.get("resourceNames") != [name]
    ]
    assert len(kept) < len(rules)
    metal.objects.patch(kind, role, {"rules": kept})


def test_what_is_deleted_comes_back(metal: Metal, run_baremetal: StartOperator) -> None:
    """The Deployment, the ClusterOperator; and a Provisioning that is created again at once."""
    metal.set_platform("BareMetal")
    metal.provision()
    run_baremetal()
    metal.wait_running()
    password = metal.password()

    metal.objects.delete("deployment", "metal3")
    eventually(lambda: metal.is_owned_by_baremetal(), "the Deployment is back", LIMIT)
    metal.wait_running()
    metal.objects.delete("clusteroperator", "baremetal")
    metal.wait_running()
    metal.challenge()

    # The garbage collector deletes what names the old one as its owner.
    for _ in range(3):
        metal.objects.delete("provisioning", PROVISIONING)
        metal.provision()
    uid = metal.objects.get("provisioning", PROVISIONING)["metadata"]["uid"]

    def owned_by_the_new_one() -> bool:
        owners = (metal.deployment() or {"metadata": {}})["metadata"].get("ownerReferences") or []
        return [one["uid"] for one in owners] == [uid]

    eventually(owned_by_the_new_one, "the new Provisioning owns the Deployment", LIMIT)
    metal.wait_running()
    metal.challenge()
    assert owned_by_the_new_one()
    assert metal.password() == password


def test_a_pod_with_metal3s_label_cannot_make_it_degraded(
    metal: Metal, run_baremetal: StartOperator
) -> None:
    """Somebody who may create pods beside it gives one the label, and lets it crash."""
    metal.set_platform("BareMetal")
    metal.provision()
    run_baremetal()
    metal.wait_running()
    foreign = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "foreign",
            "namespace": NAMESPACE,
            "labels": {"quarterdeck.dev/operand": "metal3", "k8s-app": "foreign"},
            "annotations": {"quarterdeck.dev/simulate": "crash-looping"},
        },
        "spec": {
            "nodeName": "simulated",
            "containers": [{"name": "metal3-httpd", "image": "foreign"}],
        },
    }
    metal.objects.apply(foreign)

    def crashes() -> bool:
        return "CrashLoopBackOff" in str(metal.objects.get("pod", "foreign")["status"])

    eventually(crashes, "the foreign pod crashes", LIMIT)
    metal.challenge()
    assert metal.conditions()["Available"][:2] == ("True", "DeployComplete")
    assert metal.conditions()["Degraded"][0] == "False"


ALLOWED = (
    ("get", "metal3.io", "baremetalhosts", ""),
    ("patch", "metal3.io", "baremetalhosts", ""),
    ("update", "metal3.io", "baremetalhosts", "status"),
    ("update", "metal3.io", "baremetalhosts", "finalizers"),
    ("watch", "", "secrets", ""),
    ("update", "", "secrets", ""),
    ("update", "coordination.k8s.io", "leases", ""),
    ("create", "", "events", ""),
)
"""What metal3's own operator does in its namespace."""
DENIED_RIGHTS = (
    ("create", "metal3.io", "baremetalhosts", ""),
    ("delete", "metal3.io", "baremetalhosts", ""),
    ("update", "metal3.io", "provisionings", ""),
    ("create", "", "secrets", ""),
    ("delete", "", "secrets", ""),
    ("create", "", "pods", ""),
    ("create", "", "pods", "exec"),
    ("create", "", "serviceaccounts", "token"),
    ("patch", "apps", "deployments", ""),
    ("patch", "rbac.authorization.k8s.io", "roles", ""),
    ("patch", "rbac.authorization.k8s.io", "rolebindings", ""),
    ("get", "config.openshift.io", "clusteroperators", ""),
)


@pytest.mark.parametrize("namespace", [NAMESPACE, "kube-system"])
def test_metal3s_own_account_may_do_what_it_needs_and_no_more(metal: Metal, namespace: str) -> None:
    """Its pod is privileged on a node, so its rights end at its namespace."""
    for right in ALLOWED:
        assert may(metal, right, namespace) is (namespace == NAMESPACE), right
    for right in DENIED_RIGHTS:
        assert not may(metal, right, namespace), right


def may(metal: Metal, right: tuple[str, str, str, str], namespace: str) -> bool:
    """Whether the API server allows a request of metal3's account."""
    verb, group, resource, subresource = right
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:metal3",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {
                "verb": verb,
                "group": group,
                "resource": resource,
                "subresource": subresource,
                "namespace": namespace,
            },
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = metal.plane.requests().send("POST", path, json.dumps(review).encode())
    assert answer.ok, answer.body
    return bool(answer.json()["status"]["allowed"])
