"""How Prometheus finds the metrics of an operator and its operands, from its declaration. Pure.

The Prometheus operator installs the resource types of these objects. A payload with a manifest of
them would fail on a cluster without that operator, so they are in no payload: `deploy` has them
beside it. No pod is found twice, because a sum over its metrics would be wrong.
"""

from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration, Deployed, StaticPodDelivery
from quarterdeck.delivery.manifests import PROBES_PORT

MONITORING = "monitoring.coreos.com/v1"
PORT = "metrics"
"""The Service's port; in the pods it is the port of the probes."""
INTERVAL = "30s"


def service_monitor_objects(declared: Declaration) -> list[Object]:
    """A Service for the operator's pods and its ServiceMonitor; empty without a Deployment."""
    if not isinstance(declared.delivery, Deployed):
        return []
    labels = {"app": declared.account}
    metadata = {"name": declared.account, "namespace": declared.namespace, "labels": labels}
    port = {"name": PORT, "port": PROBES_PORT, "protocol": "TCP", "targetPort": "probes"}
    service: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        # Each replica is scraped by itself, at its own address.
        "spec": {"clusterIP": "None", "selector": labels, "ports": [port]},
    }
    monitor: Object = {
        "apiVersion": MONITORING,
        "kind": "ServiceMonitor",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": labels},
            "endpoints": [{"port": PORT, "path": "/metrics", "interval": INTERVAL}],
        },
    }
    return [service, monitor]


def pod_monitor_objects(declared: Declaration) -> list[Object]:
    """The PodMonitors of its static pods and of its operands' pods, which have no Service.

    An operator that runs as a static pod in some clusters, and from a Deployment in others, has one
    for each.
    """
    found = []
    selector: Object
    if isinstance(declared.delivery, StaticPodDelivery):
        places = {declared.field_manager: declared.namespace}
        if (deployed := declared.as_deployment()) is not None:
            places[deployed.account] = deployed.namespace
        for app, namespace in places.items():
            selector = {"matchLabels": {"app": app}}
            found.append(_pod_monitor(app, namespace, selector, "probes"))
    for one in declared.operand_metrics:
        selector = {"matchExpressions": [{"key": one.label, "operator": "Exists"}]}
        found.append(_pod_monitor(one.name, one.namespace, selector, one.port))
    return found


def _pod_monitor(name: str, namespace: str, selector: Object, port: str) -> Object:
    return {
        "apiVersion": MONITORING,
        "kind": "PodMonitor",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {
            "selector": selector,
            "podMetricsEndpoints": [{"port": port, "path": "/metrics", "interval": INTERVAL}],
        },
    }
