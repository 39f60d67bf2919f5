"""A cluster to look at: what tests and pictures of the console show."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.console_server import put_with_status, send
from tests.objects import CLUSTER_OPERATOR, LONG_AGO, condition

from quarterdeck.api.meta import Object
from quarterdeck.api.times import format_time
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.operators.subscriptions.names import SUBSCRIPTION
from quarterdeck.status.staleness_marks import verdict_message

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"


def conditions(
    available: str = "True",
    progressing: str = "False",
    degraded: str = "False",
    message: str = "",
    **more: str,
) -> list[Object]:
    """The conditions that every operator has."""
    return [
        condition("Available", available, message, **more),
        condition("Progressing", progressing, message if progressing == "True" else "", **more),
        condition("Degraded", degraded, message if degraded == "True" else "", **more),
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


def subscription_objects() -> list[tuple[str, Object]]:
    """A Subscription with two config entries, and an InstallPlan that waits."""
    container = {
        "name": "manager",
        "image": "example.test/prometheus-operator:0.47.0",
        "env": [{"name": "MODE", "value": "all"}],
    }
    template = {
        "metadata": {"labels": {"app": "prometheus"}},
        "spec": {"serviceAccountName": "prometheus", "containers": [container]},
    }
    selector = {"matchLabels": {"app": "prometheus"}}
    deployment = {
        "name": "prometheus-operator",
        "spec": {"replicas": 1, "selector": selector, "template": template},
    }
    v1alpha1 = f"{OLM}/v1alpha1/namespaces/{SUBSCRIBED}"
    api = {"apiVersion": "operators.coreos.com/v1alpha1"}
    modes = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
    csv = {
        **api,
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": "prometheus.v0.47.0",
            "namespace": SUBSCRIBED,
            "annotations": {SUBSCRIPTION: "prometheus"},
        },
        "spec": {
            "displayName": "Prometheus",
            "version": "0.47.0",
            "install": {"strategy": "deployment", "spec": {"deployments": [deployment]}},
            "installModes": [{"type": mode, "supported": True} for mode in modes],
        },
        "status": {"phase": "Succeeded"},
    }
    plan = {
        **api,
        "kind": "InstallPlan",
        "metadata": {"name": "install-prometheus-2", "namespace": SUBSCRIBED},
        "spec": {
            "approval": "Manual",
            "approved": False,
            "clusterServiceVersionNames": ["prometheus.v0.65.1"],
            "replaces": "prometheus.v0.47.0",
        },
        "status": {"phase": "RequiresApproval"},
    }
    config = [
        {
            "env": [{"name": "MODE", "value": "monitoring"}, {"name": "LOG", "value": "debug"}],
            "resources": {"limits": {"memory": "256Mi"}},
        },
        {"selector": {"matchLabels": {"app": "gone"}}, "nodeSelector": {"disk": "ssd"}},
    ]
    since = {"lastTransitionTime": "2026-11-17T22:00:00Z"}
    found = [
        condition("InstallPlanPending", "True", "install-prometheus-2 waits for approval", **since),
        condition(
            "UpgradeConfigWarning",
            "True",
            "prometheus.v0.65.1 has no Deployment that config[1] selects",
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
        (f"{v1alpha1}/clusterserviceversions", csv),
        (f"{v1alpha1}/installplans", plan),
        (f"{v1alpha1}/subscriptions", subscription),
    ]


def metal_objects() -> list[tuple[str, Object]]:
    """A cluster on bare metal whose Provisioning has a fault."""
    return [
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


def recent(obj: Object, minutes: int) -> Object:
    """The object, with conditions that changed some minutes ago."""
    since = format_time(datetime.now(UTC) - timedelta(minutes=minutes))
    made: Object = json.loads(json.dumps(obj).replace(LONG_AGO, since))
    return made


def fill(requests: Requests) -> None:
    """Put everything into a cluster that has the definitions."""
    for number, one in enumerate(cluster_operators()):
        put_with_status(requests, f"{CONFIG}/clusteroperators", recent(one, 4 + 31 * number))
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
