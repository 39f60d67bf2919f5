"""The rights that a real audit log shows to be used: of the sample operator, and of an account."""

import json

from tests.objects import note

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.operators import find_operator
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.operator_process import OwnOperators
from quarterdeck.testing.plugin import Kubectl
from quarterdeck.testing.unused_rights import unused_by_operator, unused_rights
from quarterdeck.testing.waiting import eventually

GROUP = "rbac.authorization.k8s.io"
APPLY = ("apply", "--server-side", "--filename=-")


def rule(resource: str, verbs: str, name: str = "") -> Object:
    named = {"resourceNames": [name]} if name else {}
    return {"apiGroups": [""], "resources": [resource], "verbs": verbs.split(), **named}


def test_an_account_that_uses_some_of_its_rights(
    control_plane: ControlPlane, namespace: str, kubectl: Kubectl, clean_cluster: None
) -> None:
    rules = [
        rule("configmaps", "create delete"),
        rule("configmaps", "get patch list watch", name="mine"),
        rule("configmaps", "update", name="other"),
        rule("pods/log", "get"),
        rule("*", "deletecollection"),
        {"nonResourceURLs": ["/version", "/metrics"], "verbs": ["get"]},
    ]
    account = {"name": "acme", "namespace": namespace}
    role = {"apiGroup": GROUP, "kind": "ClusterRole", "name": f"{namespace}-acme"}
    objects: list[Object] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": role["name"]},
            "rules": rules,
        },
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role["name"]},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **account}],
        },
    ]
    admin = ApiObjects(control_plane.requests(), namespace)
    for one in objects:
        admin.apply(one)
    kubeconfig = control_plane.kubeconfig_for_service_account(namespace, "acme")
    user = f"system:serviceaccount:{namespace}:acme"
    where = f"--namespace={namespace}"
    mine = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}

    def does(*words: str, given: str | None = None) -> None:
        kubectl(*words, where, kubeconfig=kubeconfig, input=given)

    def left() -> list[str]:
        found = unused_rights([control_plane.audit_log], objects, user)
        return [str(one).removeprefix(f"ClusterRole {role['name']}: ") for one in found]

    everything = left()
    assert len(everything) == 11
    # An apply that creates uses two rights, and a list of one object uses its name.
    does(*APPLY, given=json.dumps(mine))
    does("get", "configmaps", "--field-selector=metadata.name=mine")
    does("get", "--raw", "/version")
    kubectl("get", "configmap", "other", where, kubeconfig=kubeconfig, check=False)  # denied
    used = {
        "create configmaps",
        "patch configmaps mine",
        "get configmaps mine",
        "list configmaps mine",
        "get /version",
    }
    eventually(lambda: set(everything) - set(left()) >= used - {"get configmaps mine"}, "logged")
    assert set(everything) - set(left()) <= used
    assert "deletecollection *" in left()


def test_the_sample_operator_uses_all_of_its_rights(
    control_plane: ControlPlane, crds: list[str], clean_cluster: None, own_operators: OwnOperators
) -> None:
    """Nothing is left but what says of itself that it is seldom used."""
    declared = find_operator("sample")
    start = own_operators(control_plane, "sample", "--leader-elect")
    start(f"--lease-namespace={declared.namespace}")
    admin = ApiObjects(control_plane.requests(), declared.namespace)
    admin.apply(note("used", "text"))
    eventually(lambda: admin.find("configmap", "used"), "the ConfigMap of the Note")
    log = control_plane.audit_log
    eventually(lambda: not unused_by_operator([log], declared), "all rights are used")
    admin.delete("note", "used")
