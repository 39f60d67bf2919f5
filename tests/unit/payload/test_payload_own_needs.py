"""Which manifests of a release would stop the operator that applies it."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from quarterdeck.api.meta import Object
from quarterdeck.payload.model import ObjectIdentity
from quarterdeck.payload.own_needs import can_stop_operator, stops_operator

ME = ("home", "me")
DEFINITION = Path(__file__).parents[3] / "deploy/crds/clusterversions.config.openshift.io.yaml"


def stopped(identity: ObjectIdentity, desired: Object | None) -> str:
    why = stops_operator(identity, desired, ME)
    assert can_stop_operator(identity, desired) or not why, "nobody would ask"
    return why


@pytest.mark.parametrize(
    "identity",
    [
        ObjectIdentity("config.openshift.io", "ClusterVersion", "", "version"),
        ObjectIdentity("apps", "Deployment", "home", "me"),
        ObjectIdentity("coordination.k8s.io", "Lease", "home", "me"),
    ],
)
def test_what_the_operator_runs_on_is_not_deleted(identity: ObjectIdentity) -> None:
    assert stopped(identity, None)
    assert not stopped(identity._replace(name="other"), None)


def test_its_deployment_and_account_go_on_working() -> None:
    deployment = ObjectIdentity("apps", "Deployment", "home", "me")
    assert stopped(deployment, {"spec": {"replicas": 0}})
    assert not stopped(deployment, {"spec": {"replicas": 1}})
    assert not stopped(deployment, {"spec": {}})
    account = ObjectIdentity("", "ServiceAccount", "home", "me")
    assert stopped(account, {"automountServiceAccountToken": False})
    assert not stopped(account, {})
    assert stops_operator(deployment, None, None) == "", "it runs by hand"


def definition() -> tuple[ObjectIdentity, Any]:
    obj = yaml.safe_load(DEFINITION.read_text())
    name = obj["metadata"]["name"]
    return ObjectIdentity("apiextensions.k8s.io", "CustomResourceDefinition", "", name), obj


def test_the_definition_of_cluster_version_keeps_what_the_operator_remembers() -> None:
    identity, good = definition()
    assert stopped(identity, None)
    assert not stopped(identity, good)
    changed = [copy.deepcopy(good) for _ in range(5)]
    changed[0]["spec"]["versions"][0]["served"] = False
    changed[1]["spec"]["versions"][0]["name"] = "v2"
    del changed[2]["spec"]["versions"][0]["subresources"]
    schema = changed[3]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["status"]["properties"]["history"]
    changed[4]["spec"]["conversion"] = {"strategy": "Webhook"}
    for one in changed:
        assert stopped(identity, one)
    schema["x-kubernetes-preserve-unknown-fields"] = True
    assert not stopped(identity, changed[3])


STATUS = {
    "apiGroups": ["config.openshift.io"],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["clusterversions/status"],
}
EVERY = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}


@pytest.mark.parametrize(
    ("hook", "stops"),
    [
        ({"rules": [EVERY]}, True),
        ({"rules": [EVERY | {"resources": ["*/*"]}]}, True),
        ({"rules": [EVERY | {"apiGroups": ["coordination.k8s.io"]}]}, True),
        ({"rules": [EVERY], "failurePolicy": "Ignore"}, False),
        ({"rules": [EVERY | {"resources": ["pods"]}]}, False),
        ({"rules": [EVERY | {"operations": ["DELETE"]}]}, False),
        ({"rules": [EVERY | {"scope": "Cluster"}]}, False),
        ({"rules": [EVERY | {"scope": "Cluster", "resources": ["*/*"]}]}, True),
        ({"rules": [STATUS]}, True),
        ({"rules": [STATUS], "namespaceSelector": {"matchLabels": {"a": "b"}}}, True),
        ({"rules": [STATUS | {"resources": ["*/status"]}]}, True),
        ({"rules": [STATUS | {"resources": ["clusterversions"]}]}, False),
        ({"rules": [STATUS | {"scope": "Namespaced"}]}, False),
        ({"rules": [STATUS], "failurePolicy": "Ignore"}, False),
        ({"rules": [EVERY], "objectSelector": {"matchLabels": {"a": "b"}}}, False),
        ({"rules": [EVERY], "matchConditions": [{"name": "x", "expression": "false"}]}, False),
        ({"rules": [EVERY], "namespaceSelector": {"matchLabels": {"a": "b"}}}, False),
        (
            {
                "rules": [EVERY],
                "namespaceSelector": {
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "NotIn",
                            "values": ["home"],
                        }
                    ]
                },
            },
            False,
        ),
        ({"rules": [EVERY], "namespaceSelector": {"matchExpressions": "nonsense"}}, False),
        ({"rules": "nonsense"}, False),
    ],
)
@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_a_webhook_is_not_asked_about_its_lease_and_its_status(
    kind: str, hook: Object, stops: bool
) -> None:
    identity = ObjectIdentity("admissionregistration.k8s.io", kind, "", "x")
    assert bool(stopped(identity, {"webhooks": [{"name": "x.example.test", **hook}]})) is stops
    assert not stopped(identity, None)
