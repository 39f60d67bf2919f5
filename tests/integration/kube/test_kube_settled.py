"""An applied or created object, read back from a real API server, needs no further write."""

import asyncio
import base64
from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from quarterdeck.api.meta import CONFIG_MAPS, CRDS, DEPLOYMENTS, SECRETS, Object, foreign
from quarterdeck.kube import Client, NotFound, differences, load_kubeconfig
from quarterdeck.kube.compare import unsettled

ME = "settled-test"
SERVICES = foreign("v1", "Service", "services", namespaced=True)
ROLE_BINDINGS = foreign(
    "rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", namespaced=True
)
NETWORK_POLICIES = foreign(
    "networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", namespaced=True
)
STATEFUL_SETS = foreign("apps/v1", "StatefulSet", "statefulsets", namespaced=True)
DAEMON_SETS = foreign("apps/v1", "DaemonSet", "daemonsets", namespaced=True)
QUOTAS = foreign("v1", "ResourceQuota", "resourcequotas", namespaced=True)
JOBS = foreign("batch/v1", "Job", "jobs", namespaced=True)
CRON_JOBS = foreign("batch/v1", "CronJob", "cronjobs", namespaced=True)
WIDGETS = foreign("settled.example.com/v1", "Widget", "widgets", namespaced=True)


@pytest_asyncio.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client(load_kubeconfig(kubeconfig)) as client:
        yield client


def pod_spec() -> Object:
    return {
        "serviceAccountName": "default",
        "containers": [
            {
                "name": "main",
                "image": "example.com/main:1.0",
                "args": ["--v=2"],
                "env": [
                    {"name": "EMPTY", "value": ""},
                    {"name": "A", "value": "1000m"},
                    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {
                        "name": "CPU",
                        "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}},
                    },
                ],
                "ports": [{"containerPort": 8080}, {"containerPort": 53, "protocol": "UDP"}],
                "resources": {
                    "limits": {"cpu": "1000m", "memory": "1024Mi"},
                    "requests": {"cpu": "0.5", "memory": "1e9"},
                },
                "readinessProbe": {"httpGet": {"path": "/", "port": 8080}},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            },
            {"name": "side", "image": "example.com/side", "securityContext": {}},
        ],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "1024Mi"}},
            {"name": "scratch", "emptyDir": {}},
            {"name": "conf", "configMap": {"name": "conf"}},
            {
                "name": "all",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token"}},
                        {
                            "downwardAPI": {
                                "items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.name"}}]
                            }
                        },
                    ]
                },
            },
        ],
    }


def template() -> Object:
    return {"metadata": {"labels": {"app": "x"}}, "spec": pod_spec()}


SELECTOR = {"matchLabels": {"app": "x"}}
SPECIMENS: dict[str, tuple[Any, Object]] = {
    "a ConfigMap": (CONFIG_MAPS, {"data": {"x": "1000m", "empty": ""}}),
    "a ConfigMap with nothing in it": (CONFIG_MAPS, {}),
    "a ConfigMap with empty maps": (
        CONFIG_MAPS,
        {"data": {}, "metadata": {"labels": {}, "annotations": {}, "finalizers": []}},
    ),
    "a Secret": (SECRETS, {"data": {"x": base64.b64encode(b"y").decode()}}),
    "a Deployment whose quantities the server rewrites": (
        DEPLOYMENTS,
        {"spec": {"selector": SELECTOR, "template": template()}},
    ),
    "a StatefulSet with a volume claim": (
        STATEFUL_SETS,
        {"spec": {"selector": SELECTOR, "serviceName": "x", "template": template()}},
    ),
    "a DaemonSet": (DAEMON_SETS, {"spec": {"selector": SELECTOR, "template": template()}}),
    "a Service without protocol and target port": (
        SERVICES,
        {"spec": {"selector": {"app": "x"}, "ports": [{"name": "http", "port": 80}]}},
    ),
    "a RoleBinding without API groups": (
        ROLE_BINDINGS,
        {
            "roleRef": {"kind": "ClusterRole", "name": "view"},
            "subjects": [
                {"kind": "User", "name": "jane"},
                {"kind": "ServiceAccount", "name": "default", "namespace": "default"},
            ],
        },
    ),
    "a NetworkPolicy with an empty selector": (
        NETWORK_POLICIES,
        {"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}},
    ),
    "a ResourceQuota": (QUOTAS, {"spec": {"hard": {"cpu": "1000m", "memory": "1024Mi"}}}),
    "a Job": (
        JOBS,
        {
            "spec": {
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "a", "image": "example.com/a:1"}],
                    }
                }
            }
        },
    ),
    "a CronJob": (
        CRON_JOBS,
        {
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {
                    "spec": {
                        "template": {
                            "spec": {
                                "restartPolicy": "Never",
                                "containers": [{"name": "a", "image": "example.com/a:1"}],
                            }
                        }
                    }
                },
            }
        },
    ),
}


def named(body: Object, namespace: str) -> Object:
    made = deepcopy(body)
    made["metadata"] = {"name": "specimen", "namespace": namespace, **made.get("metadata", {})}
    return made


@pytest.mark.parametrize(("resource", "body"), SPECIMENS.values(), ids=SPECIMENS.keys())
async def test_an_applied_object_is_settled(
    client: Client, namespace: str, resource: Any, body: Object
) -> None:
    desired = named(body, namespace)
    await client.apply(resource, desired, field_manager=ME)
    live = await client.get(resource, "specimen", namespace)
    assert list(unsettled(live, desired, ME)) == []
    assert not differences(live, desired, ME)[1]


@pytest.mark.parametrize(("resource", "body"), SPECIMENS.values(), ids=SPECIMENS.keys())
async def test_a_created_object_is_settled(
    client: Client, namespace: str, resource: Any, body: Object
) -> None:
    desired = named(body, namespace)
    created = await client.create(resource, desired, field_manager=ME)
    assert list(unsettled(created, desired, ME)) == []
    assert not differences(created, desired, ME)[1]


def deployment(namespace: str) -> Object:
    _, body = SPECIMENS["a Deployment whose quantities the server rewrites"]
    return named(body, namespace)


def container(desired: Object) -> Object:
    found: Object = desired["spec"]["template"]["spec"]["containers"][0]
    return found


def reorder_env(desired: Object) -> None:
    container(desired)["env"].reverse()


def remove_env(desired: Object) -> None:
    del container(desired)["env"][1]


def remove_argument(desired: Object) -> None:
    del container(desired)["args"]


def remove_field_of_atomic_item(desired: Object) -> None:
    desired["spec"]["template"]["spec"]["tolerations"][0].pop("key")


def remove_container(desired: Object) -> None:
    del desired["spec"]["template"]["spec"]["containers"][1]


def change_quantity(desired: Object) -> None:
    container(desired)["resources"]["limits"]["cpu"] = "1001m"


def change_probe_by_removal(desired: Object) -> None:
    del container(desired)["readinessProbe"]


def empty_a_value(desired: Object) -> None:
    container(desired)["env"][1]["value"] = ""


def add_label(desired: Object) -> None:
    desired["metadata"]["labels"] = {"new": "label"}


CHANGES = [
    reorder_env,
    remove_env,
    remove_argument,
    remove_field_of_atomic_item,
    remove_container,
    change_quantity,
    change_probe_by_removal,
    empty_a_value,
    add_label,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.replace("_", " "))
async def test_a_change_is_noticed_and_one_apply_settles_it(
    client: Client, namespace: str, change: Any
) -> None:
    desired = deployment(namespace)
    live = await client.apply(DEPLOYMENTS, desired, field_manager=ME)
    change(desired)
    assert list(unsettled(live, desired, ME))
    live = await client.apply(DEPLOYMENTS, desired, field_manager=ME)
    assert list(unsettled(live, desired, ME)) == []


async def test_a_created_field_that_is_no_longer_wanted_is_a_leftover(
    client: Client, namespace: str
) -> None:
    desired = deployment(namespace)
    live = await client.create(DEPLOYMENTS, desired, field_manager=ME)
    remove_env(desired)
    assert list(unsettled(live, desired, ME))
    assert differences(live, desired, ME)[1]


async def test_fields_of_others_do_not_matter(client: Client, namespace: str) -> None:
    desired = deployment(namespace)
    await client.apply(DEPLOYMENTS, desired, field_manager=ME)
    theirs = {
        "metadata": {"labels": {"their": "label"}, "annotations": {"their": "note"}},
        "spec": {"minReadySeconds": 3},
    }
    live = await client.patch(
        DEPLOYMENTS, "specimen", theirs, namespace, field_manager="somebody-else"
    )
    assert list(unsettled(live, desired, ME)) == []


async def test_a_field_of_ours_that_another_changed_is_noticed(
    client: Client, namespace: str
) -> None:
    desired = named({"data": {"x": "ours"}}, namespace)
    await client.apply(CONFIG_MAPS, desired, field_manager=ME)
    live = await client.patch(
        CONFIG_MAPS, "specimen", {"data": {"x": "theirs"}}, namespace, field_manager="other"
    )
    assert list(unsettled(live, desired, ME)) == ["data.x"]


async def test_an_equal_field_that_only_another_owns_is_not_settled(
    client: Client, namespace: str
) -> None:
    """If they stop wanting it, it would go; so it has to be ours too."""
    desired = named({"data": {"x": "same"}}, namespace)
    live = await client.apply(CONFIG_MAPS, desired, field_manager="other")
    assert list(unsettled(live, desired, ME)) == ["data.x"]


WIDGET_CRD = {
    "metadata": {"name": "widgets.settled.example.com"},
    "spec": {
        "group": "settled.example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                                "properties": {
                                    "defaulted": {"type": "string", "default": "here"},
                                    "ratio": {"type": "number"},
                                    "parts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["id"],
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {
                                                "id": {"type": "integer"},
                                                "note": {"type": "string"},
                                            },
                                        },
                                    },
                                    "tags": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


async def test_a_custom_object_with_sets_maps_and_unknown_fields(
    client: Client, namespace: str, clean_cluster: None
) -> None:
    crd = await client.apply(CRDS, WIDGET_CRD, field_manager=ME)
    assert list(unsettled(crd, WIDGET_CRD, ME)) == []
    await served(client, "/apis/settled.example.com/v1")
    desired = named(
        {
            "spec": {
                "ratio": 1.0,
                "parts": [{"id": 2, "note": ""}, {"id": 1}],
                "tags": ["b", "a", "ü"],
                "free": {"any": [{"x": 1}], "none": {}, "zero": 0, "off": False},
            }
        },
        namespace,
    )
    live = await client.apply(WIDGETS, desired, field_manager=ME)
    assert list(unsettled(live, desired, ME)) == []
    del desired["spec"]["tags"][0]
    assert list(unsettled(live, desired, ME)) == ["spec.tags.*"]
    live = await client.apply(WIDGETS, desired, field_manager=ME)
    assert list(unsettled(live, desired, ME)) == []
    del desired["spec"]["free"]["zero"]
    assert list(unsettled(live, desired, ME)) == ["spec.free.zero"]
    live = await client.apply(WIDGETS, desired, field_manager=ME)
    assert list(unsettled(live, desired, ME)) == []


async def served(client: Client, path: str) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                await client.raw(path)
            except NotFound:
                await asyncio.sleep(0.05)
            else:
                return
