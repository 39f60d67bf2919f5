"""How Prometheus finds an operator's metrics by a Service, from its declaration. Pure.

The Prometheus operator installs the resource type ServiceMonitor. A payload with a manifest of it
would fail on a cluster without that operator, so these objects are in no payload: `deploy` has them
beside it.
"""

from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration, Deployed
from quarterdeck.delivery.manifests import PROBES_PORT

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
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": labels},
            "endpoints": [{"port": PORT, "path": "/metrics", "interval": INTERVAL}],
        },
    }
    return [service, monitor]
