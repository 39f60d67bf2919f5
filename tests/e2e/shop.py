"""The IngressController `shop`, whose access logs the tests read."""

from typing import Any

from tests.e2e.cluster import LIMIT, RealCluster
from tests.prometheus_process import ROUTER

_PORT = 8080


def shop(access: dict[str, Any] | None) -> dict[str, Any]:
    """The IngressController with this access logging."""
    spec: dict[str, Any] = {"replicas": 1, "endpointPublishingStrategy": {"type": "Private"}}
    return {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "IngressController",
        "metadata": {"name": "shop", "namespace": "openshift-ingress-operator"},
        "spec": spec | ({"logging": {"access": access}} if access else {}),
    }


def router_of_shop(cluster: RealCluster) -> dict[str, Any]:
    """The newest pod of the shop's router; the one before may still be ending."""
    pods = cluster.pods("openshift-ingress", f"{ROUTER}=shop")
    return max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))


def ask_shop(cluster: RealCluster, path: str) -> None:
    """Send a request to the shop's router."""
    address = router_of_shop(cluster)["status"]["podIP"]
    cluster.run(
        *("curl", "--silent", "--max-time", "10", "--user-agent", "reader"),
        *("--header", "Host: shop.example.com", f"http://{address}:{_PORT}{path}"),
        inside=True,
    )


def shop_is(cluster: RealCluster, condition: str) -> None:
    """Wait for a condition of the shop, and its roll-out."""
    wait = ("wait", "--namespace=openshift-ingress-operator", f"--timeout={LIMIT:.0f}s")
    cluster.kubectl(*wait, "ingresscontroller/shop", f"--for=condition={condition}")
    cluster.roll_out("openshift-ingress", "deployment/router-shop")
