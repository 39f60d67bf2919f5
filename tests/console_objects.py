"""A cluster to look at: what tests and pictures of the console show."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.console_server import put_with_status, send
from tests.objects import (
    CLUSTER_OPERATOR,
    LONG_AGO,
    condition,
    deployment,
    foreign_container,
    pod,
)

from quarterdeck.api.meta import Object
from quarterdeck.api.times import format_time
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.metal3.names import BAREMETAL_OWNS, NAMESPACE
from quarterdeck.operators.subscriptions.names import SUBSCRIPTION
from quarterdeck.status.staleness import CHECKED
from quarterdeck.status.staleness_marks import verdict_message
from quarterdeck.status.writers import CHECKER, CHECKER_SETTINGS

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"


def conditions(
    available: str = "True",
    progressing: str = "False",
    degraded: str = "False",
    message: str = "",
    why: str = "AsExpected",
    **more: str,
) -> list[Object]:
    """The conditions that every operator has; `why` is the reason of what is not as expected."""

    def made(kind: str, status: str, expected: str) -> Object:
        text = message if kind == "Available" or status == "True" else ""
        reason = "AsExpected" if status == expected else why
        return condition(kind, status, text, reason=reason, **more)

    return [
        made("Available", available, "True"),
        made("Progressing", progressing, "False"),
        made("Degraded", degraded, "False"),
        condition("Upgradeable", "True", "", **more),
    ]


def operator(name: str, found: list[Object], version: str = "0.2.0", **status: Any) -> Object:
    """A ClusterOperator with this status."""
    told = {"conditions": found, "versions": [{"name": "operator", "version": version}], **status}
    return {**CLUSTER_OPERATOR, "metadata": {"name": name}, "spec": {}, "status": told}


def stale(name: str) -> Object:
    """An operator with the checker's verdict."""
    since = {"lastTransitionTime": "2026-11-17T22:00:00Z"}
    marked = [
        one | {"status": "Unknown", "message": verdict_message(one["message"], one["status"], 1200)}
        for one in conditions(message=f"{name} is available at 0.1.0", **since)
    ]
    return operator(name, marked, "0.1.0")


def cluster_operators() -> list[Object]:
    """Operators in all states."""
    off = [
        *conditions(message="all is well"),
        condition("Disabled", "True", "Nothing to do on this Platform"),
    ]
    return [
        operator(
            "ingress",
            conditions(
                available="False",
                why="RouterUnavailable",
                message="RouterAvailable: 0 of 2 router pods are ready: the last one exited with "
                "1 (bind 0.0.0.0:8080: address in use)",
            ),
            relatedObjects=[
                {"group": "", "resource": "namespaces", "name": "openshift-ingress"},
                {
                    "group": "apps",
                    "resource": "deployments",
                    "namespace": "openshift-ingress-operator",
                    "name": "ingress-operator",
                },
            ],
        ),
        stale("machine-api"),
        operator(
            "operator-lifecycle-manager",
            conditions(
                progressing="True",
                why="SubscriptionsUpgrade",
                message="3 of 14 subscriptions upgrade: etcd 0.9.2 to 0.9.4, keda 2.17.0 to 2.18.0",
            ),
        ),
        operator("sample", conditions(message="4 notes are kept as ConfigMaps")),
        operator("dns", conditions(message="10 zones are served")),
        operator("baremetal", off),
    ]


UNMANAGED = {
    "kind": "Deployment",
    "group": "apps",
    "namespace": "openshift-machine-api",
    "name": "machine-api-operator",
    "unmanaged": True,
}


RISK: Object = {
    "name": "SlowRouters",
    "message": "Routers with more than 500 routes take minutes to start with 0.4.0.",
    "url": "https://example.test/risks/slow-routers",
    "matchingRules": [{"type": "Always"}],
}


def cluster_version(done: str = "34 of 48 done (70% complete), waiting on machine-api") -> Object:
    """A cluster on its way from 0.1.0 to 0.2.0."""
    release = {"version": "0.2.0", "image": "quarterdeck:0.2.0"}
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {
            "clusterID": "11111111-2222-3333-4444-555555555555",
            "channel": "stable",
            "overrides": [UNMANAGED],
        },
        "status": {
            "desired": release,
            "observedGeneration": 1,
            "versionHash": "abcdef",
            "availableUpdates": [
                {"version": "0.3.0", "image": "quarterdeck:0.3.0", "url": "https://example.test/"}
            ],
            "conditionalUpdates": [
                {
                    "release": {"version": "0.4.0", "image": "quarterdeck:0.4.0"},
                    "risks": [RISK],
                    "conditions": [
                        condition("Recommended", "False", RISK["message"], reason=RISK["name"])
                    ],
                }
            ],
            "history": [
                {
                    "state": "Partial",
                    "startedTime": "2026-11-17T22:40:00Z",
                    "completionTime": None,
                    "version": "0.2.0",
                    "image": "quarterdeck:0.2.0",
                    "verified": True,
                },
                {
                    "state": "Completed",
                    "startedTime": "2026-11-10T08:00:00Z",
                    "completionTime": "2026-11-10T08:03:10Z",
                    "version": "0.1.0",
                    "image": "quarterdeck:0.1.0",
                    "verified": True,
                },
            ],
            "conditions": [
                condition("Available", "True", "Done applying 0.1.0"),
                condition("Failing", "False", ""),
                condition("Progressing", "True", f"Working towards 0.2.0: {done}"),
                condition("ReleaseAccepted", "True", "Payload loaded"),
            ],
        },
    }


CONFIG = "/apis/config.openshift.io/v1"
OPERATOR = "/apis/operator.openshift.io"
OLM = "/apis/operators.coreos.com"
INGRESS_HOME = "openshift-ingress-operator"
SUBSCRIBED = "monitoring"


def log_level_objects() -> list[tuple[str, Object]]:
    """The configuration of the cluster version operator, and the gate that makes it count."""
    gate = {"name": "ClusterVersionOperatorConfiguration"}
    gates = [{"version": "0.2.0", "enabled": [gate], "disabled": []}]
    return [
        (
            f"{OPERATOR}/v1alpha1/clusterversionoperators",
            {
                "apiVersion": "operator.openshift.io/v1alpha1",
                "kind": "ClusterVersionOperator",
                "metadata": {"name": "cluster"},
                "spec": {"operatorLogLevel": "Normal"},
                "status": {"observedGeneration": 1},
            },
        ),
        (
            f"{CONFIG}/featuregates",
            {
                "apiVersion": "config.openshift.io/v1",
                "kind": "FeatureGate",
                "metadata": {"name": "cluster"},
                "spec": {},
                "status": {"featureGates": gates},
            },
        ),
    ]


def ingress_objects() -> list[tuple[str, Object]]:
    """An IngressController that logs to its sidecar."""
    found = [
        condition("Admitted", "True", ""),
        condition("Available", "True", "2 of 2 router pods are ready"),
        condition("Degraded", "False", ""),
        condition("AccessLoggingReady", "True", "lines of 2 pods arrive; none was lost"),
    ]
    access = {"destination": {"type": "Container", "container": {"maxLength": 1024}}}
    return [
        ("/api/v1/namespaces", {"metadata": {"name": INGRESS_HOME}}),
        ("/api/v1/namespaces", {"metadata": {"name": "openshift-ingress"}}),
        (
            f"{OPERATOR}/v1/namespaces/{INGRESS_HOME}/ingresscontrollers",
            {
                "apiVersion": "operator.openshift.io/v1",
                "kind": "IngressController",
                "metadata": {"name": "default", "namespace": INGRESS_HOME},
                "spec": {"domain": "apps.example.test", "logging": {"access": access}},
                "status": {"conditions": found, "domain": "apps.example.test"},
            },
        ),
    ]


def prometheus(version: str, labels: Object, **env: str) -> Object:
    """A version of an operator, whose pods have these labels and variables."""
    container = {
        "name": "manager",
        "image": f"example.test/prometheus-operator:{version}",
        "env": [{"name": name, "value": value} for name, value in {"MODE": "all", **env}.items()],
    }
    template = {
        "metadata": {"labels": labels},
        "spec": {"serviceAccountName": "prometheus", "containers": [container]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    installed = {"name": "prometheus-operator", "spec": spec}
    modes = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"prometheus.v{version}",
            "namespace": SUBSCRIBED,
            "annotations": {SUBSCRIPTION: "prometheus"},
        },
        "spec": {
            "displayName": "Prometheus",
            "version": version,
            "install": {"strategy": "deployment", "spec": {"deployments": [installed]}},
            "installModes": [{"type": mode, "supported": True} for mode in modes],
        },
    }


def catalog() -> str:
    """A catalog with the next version, in which a config entry matches nothing any more."""
    csv = prometheus("0.65.1", labels={"app.kubernetes.io/name": "prometheus"}, CACHE="64Mi")
    data = base64.b64encode(
        json.dumps({**csv, "metadata": {"name": "prometheus.v0.65.1"}}).encode()
    )
    package = {"schema": "olm.package", "name": "prometheus", "defaultChannel": "beta"}
    entries = [{"name": "prometheus.v0.65.1", "replaces": "prometheus.v0.47.0"}]
    channel = {
        "schema": "olm.channel",
        "name": "beta",
        "package": "prometheus",
        "entries": entries,
    }
    bundle = {
        "schema": "olm.bundle",
        "name": "prometheus.v0.65.1",
        "package": "prometheus",
        "image": "example.test/prometheus-bundle:0.65.1",
        "properties": [
            {
                "type": "olm.package",
                "value": {"packageName": "prometheus", "version": "0.65.1"},
            },
            {"type": "olm.bundle.object", "value": {"data": data.decode()}},
        ],
    }
    return "\n".join(map(json.dumps, (package, channel, bundle)))


def subscription_objects() -> list[tuple[str, Object]]:
    """A Subscription with two config entries, and an InstallPlan that waits."""
    v1alpha1 = f"{OLM}/v1alpha1/namespaces/{SUBSCRIBED}"
    api = {"apiVersion": "operators.coreos.com/v1alpha1"}
    csv = prometheus("0.47.0", labels={"app": "prometheus"}) | {"status": {"phase": "Succeeded"}}
    plan = {
        **api,
        "kind": "InstallPlan",
        "metadata": {"name": "install-prometheus-2", "namespace": SUBSCRIBED},
        "spec": {
            "approval": "Manual",
            "approved": False,
            "clusterServiceVersionNames": ["prometheus.v0.65.1"],
            "source": "community",
            "sourceNamespace": SUBSCRIBED,
            "replaces": "prometheus.v0.47.0",
        },
        "status": {"phase": "RequiresApproval"},
    }
    config = [
        {
            "env": [{"name": "MODE", "value": "monitoring"}, {"name": "LOG", "value": "debug"}],
            "resources": {"limits": {"memory": "256Mi"}},
        },
        {"selector": {"matchLabels": {"app": "prometheus"}}, "nodeSelector": {"disk": "ssd"}},
    ]
    since = {"lastTransitionTime": "2026-11-17T22:00:00Z"}
    found = [
        condition("InstallPlanPending", "True", "install-prometheus-2 waits for approval", **since),
        condition(
            "UpgradeConfigWarning",
            "True",
            "with prometheus.v0.65.1: config[1]: it selects no Deployment",
            **since,
        ),
    ]
    subscription = {
        **api,
        "kind": "Subscription",
        "metadata": {"name": "prometheus", "namespace": SUBSCRIBED},
        "spec": {
            "name": "prometheus",
            "channel": "beta",
            "source": "community",
            "sourceNamespace": SUBSCRIBED,
            "installPlanApproval": "Manual",
            "config": config,
        },
        "status": {
            "installedCSV": "prometheus.v0.47.0",
            "currentCSV": "prometheus.v0.65.1",
            "state": "UpgradePending",
            "installPlanRef": {"name": "install-prometheus-2", "namespace": SUBSCRIBED},
            "conditions": found,
        },
    }
    group = {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": "group", "namespace": SUBSCRIBED},
        "spec": {},
    }
    return [
        ("/api/v1/namespaces", {"metadata": {"name": SUBSCRIBED}}),
        (f"{OLM}/v1/namespaces/{SUBSCRIBED}/operatorgroups", group),
        (
            f"/api/v1/namespaces/{SUBSCRIBED}/configmaps",
            {"metadata": {"name": "community"}, "data": {"catalog.json": catalog()}},
        ),
        (
            f"{v1alpha1}/catalogsources",
            {
                **api,
                "kind": "CatalogSource",
                "metadata": {"name": "community", "namespace": SUBSCRIBED},
                "spec": {"sourceType": "configmap", "configMap": "community"},
            },
        ),
        (f"{v1alpha1}/clusterserviceversions", csv),
        (f"{v1alpha1}/installplans", plan),
        (f"{v1alpha1}/subscriptions", subscription),
    ]


def without_pods(name: str, **more: Object) -> Object:
    """A Deployment without replicas."""
    made = deployment(name, pod(name, foreign_container("example.test/x:1")), 0)
    made["metadata"] |= more.get("metadata") or {}
    return made


def metal_objects() -> list[tuple[str, Object]]:
    """A cluster on bare metal whose Provisioning has a fault."""
    owned = {"metadata": {"annotations": {BAREMETAL_OWNS: ""}}}
    return [
        ("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}),
        *(
            (f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", without_pods(name, **more))
            for name, more in (
                ("metal3", owned),
                ("cluster-baremetal-operator", {}),
                ("machine-api-operator", {}),
            )
        ),
        (
            f"{CONFIG}/infrastructures",
            {
                "apiVersion": "config.openshift.io/v1",
                "kind": "Infrastructure",
                "metadata": {"name": "cluster"},
                "spec": {"platformSpec": {"type": "BareMetal"}},
                "status": {
                    "platform": "BareMetal",
                    "platformStatus": {"type": "BareMetal"},
                    "apiServerURL": "https://api.example.test:6443",
                    "apiServerInternalURI": "https://api-int.example.test:6443",
                    "etcdDiscoveryDomain": "",
                    "infrastructureName": "example",
                    "controlPlaneTopology": "HighlyAvailable",
                    "infrastructureTopology": "HighlyAvailable",
                },
            },
        ),
        (
            "/apis/metal3.io/v1alpha1/provisionings",
            {
                "apiVersion": "metal3.io/v1alpha1",
                "kind": "Provisioning",
                "metadata": {"name": "provisioning-configuration"},
                "spec": {
                    "provisioningNetwork": "Managed",
                    "provisioningInterface": "ens3",
                    "provisioningIP": "172.30.20.300",
                    "provisioningNetworkCIDR": "172.30.20.0/24",
                    "provisioningDHCPRange": "172.30.20.10,172.30.20.100",
                },
            },
        ),
    ]


def written(manager: str, minutes: int, *fields: str, operation: str = "Update") -> Object:
    """The managedFields entry of a manager that owns these fields of the conditions."""
    owned: Object = {
        f'k:{{"type":"{type_}"}}': {".": {}, **{f"f:{field}": {} for field in fields}}
        for type_ in CHECKED
    }
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "config.openshift.io/v1",
        "time": ago(minutes),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": {".": {}, **owned}}},
        "subresource": "status",
    }


def ago(minutes: float) -> str:
    """The time some minutes ago."""
    return format_time(datetime.now(UTC) - timedelta(minutes=minutes))


def writers() -> dict[str, list[Object]]:
    """Who wrote the conditions of some operators."""
    own = ("status", "message", "reason")
    return {
        "ingress": [written("quarterdeck-ingress", 0, *own, operation="Apply")],
        "machine-api": [
            written("machine-api-operator", 23, "reason"),
            written("quarterdeck-staleness", 3, "status", "message", "lastTransitionTime"),
        ],
    }


def event(name: str, about: str, reason: str, note: str, minutes: int, type_: str) -> Object:
    """An event about a ClusterOperator."""
    regarding = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "name": about}
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": ago(minutes).replace("Z", ".000000Z"),
        "reportingController": "quarterdeck-staleness",
        "reportingInstance": "quarterdeck-staleness-0",
        "action": "Check",
        "reason": reason,
        "type": type_,
        "note": note,
        "regarding": regarding,
    }


EVENTS = (
    ("machine-api", "OperatorStale", "no sign of life for 20m0s, and no answer", 3, "Warning"),
    ("machine-api", "LeaderElection", "machine-api-operator-5c9d became the leader", 190, "Normal"),
    ("ingress", "RouterUnavailable", "0 of 2 router pods are ready", 4, "Warning"),
)


SETTINGS = f"/api/v1/namespaces/{CHECKER_SETTINGS.namespace}/configmaps/{CHECKER_SETTINGS.name}"
EVENTS_PATH = "/apis/events.k8s.io/v1/namespaces/default/events"


def publish_settings(requests: Requests) -> None:
    """The settings of a staleness checker that runs, as it publishes them itself."""
    # A little ahead, which is allowed: it counts until the last test of a file.
    at = format_time(datetime.now(UTC) + timedelta(minutes=2))
    entry = {"intervalSeconds": 600, "keepUpgradeableFalse": False, "at": at}
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CHECKER_SETTINGS.name, "namespace": CHECKER_SETTINGS.namespace},
        "data": {"control-plane-0": json.dumps(entry)},
    }
    query = f"?fieldManager={CHECKER}&force=true"
    body = json.dumps(obj).encode()
    answer = requests.send("PATCH", f"{SETTINGS}{query}", body, "application/apply-patch+yaml")
    assert answer.ok, answer.body.decode(errors="replace")


def set_writers(requests: Requests) -> None:
    """Let the API server say who wrote the conditions, and when."""
    for name, entries in writers().items():
        patch = [{"op": "replace", "path": "/metadata/managedFields", "value": entries}]
        body = json.dumps(patch).encode()
        path = f"{CONFIG}/clusteroperators/{name}"
        answer = requests.send("PATCH", path, body, "application/json-patch+json")
        assert answer.ok, answer.body.decode(errors="replace")


def recent(obj: Object, minutes: int) -> Object:
    """The object, with conditions that changed some minutes ago."""
    since = format_time(datetime.now(UTC) - timedelta(minutes=minutes))
    made: Object = json.loads(json.dumps(obj).replace(LONG_AGO, since))
    return made


def fill(requests: Requests) -> None:
    """Put everything into a cluster that has the definitions."""
    for number, one in enumerate(cluster_operators()):
        put_with_status(requests, f"{CONFIG}/clusteroperators", recent(one, 4 + 31 * number))
    set_writers(requests)
    publish_settings(requests)
    for number, (about, reason, note, minutes, type_) in enumerate(EVENTS):
        made = event(f"console-{number}", about, reason, note, minutes, type_)
        send(requests, "POST", EVENTS_PATH, made)
    put_with_status(requests, f"{CONFIG}/clusterversions", recent(cluster_version(), 12))
    for path, obj in (
        *log_level_objects(),
        *ingress_objects(),
        *subscription_objects(),
        *metal_objects(),
    ):
        if "status" in obj:
            put_with_status(requests, path, recent(obj, 95))
        else:
            send(requests, "POST", path, obj)


def take_away(requests: Requests) -> None:
    """Remove what `fill` puts into namespaces that stay."""
    for number in range(len(EVENTS)):
        requests.send("DELETE", f"{EVENTS_PATH}/console-{number}")
    requests.send("DELETE", SETTINGS)
