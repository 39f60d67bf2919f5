"""The ingress operator in the payload: with its capability, and with few rights."""

import yaml
from tests.places import DEPLOY

from quarterdeck.api.meta import Object

CAPABILITY = "capability.openshift.io/name"
WRITES = {"create", "update", "patch", "delete", "deletecollection"}


def manifests(pattern: str) -> list[Object]:
    files = sorted((DEPLOY / "payload").glob(pattern))
    assert files
    return [obj for file in files for obj in yaml.safe_load_all(file.read_text())]


def test_all_of_it_comes_with_the_capability() -> None:
    found = manifests("*_ingress-operator_*") + manifests("*_router_*")
    without = [
        f"{one['kind']} {one['metadata']['name']}"
        for one in found
        if one["metadata"]["annotations"].get(CAPABILITY) != "Ingress"
    ]
    assert without == []
    kinds = {one["kind"] for one in found}
    assert {"CustomResourceDefinition", "Deployment", "ClusterOperator", "ServiceAccount"} <= kinds


def test_the_routers_account_comes_before_the_operator() -> None:
    """A new router may need a right that the old one did not."""
    files = sorted(path.name for path in (DEPLOY / "payload").glob("*.yaml"))
    (account,) = (name for name in files if "_router_" in name)
    (operator,) = (name for name in files if name.endswith("ingress-operator_03_deployment.yaml"))
    assert files.index(account) < files.index(operator)


def test_a_router_writes_only_events_and_the_status_of_its_pod() -> None:
    rules = [
        (one["metadata"].get("namespace", ""), resource)
        for one in manifests("*_router_*")
        for rule in one.get("rules", ())
        if WRITES & set(rule["verbs"])
        for resource in rule["resources"]
    ]
    assert sorted(rules) == [("", "events"), ("openshift-ingress", "pods/status")]


def test_a_router_reads_only_what_it_routes_by() -> None:
    """Its account sees Secrets of all namespaces: nothing is in its role that it does not use."""
    (role,) = (one for one in manifests("*_router_*") if one["kind"] == "ClusterRole")
    read = {
        (resource, verb)
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in set(rule["verbs"]) - WRITES
    }
    kinds = ("ingresses", "services", "namespaces", "nodes", "endpointslices", "secrets")
    assert read == {(kind, verb) for kind in kinds for verb in ("list", "watch")}


def test_the_operator_writes_in_two_namespaces_and_ingress_classes() -> None:
    rules = {
        (one["metadata"].get("namespace", ""), resource)
        for one in manifests("*_ingress-operator_02_rbac.yaml")
        for rule in one.get("rules", ())
        if WRITES & set(rule["verbs"])
        for resource in rule["resources"]
    }
    everywhere = {resource for namespace, resource in rules if not namespace}
    assert everywhere == {"clusteroperators", "clusteroperators/status", "ingressclasses"}
    namespaces = {namespace for namespace, _ in rules if namespace}
    # Events about cluster-scoped objects are in `default`.
    assert namespaces == {"default", "openshift-ingress", "openshift-ingress-operator"}
