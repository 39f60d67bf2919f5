"""The objects of a cluster with real nodes: rights of its components, and CoreDNS. Pure."""

from typing import Any

from quarterdeck.localcluster.certificates import LOG_READER
from quarterdeck.localcluster.real_nodes.addresses import DNS_DOMAIN, DNS_SERVICE, RealNode

_GROUP = "rbac.authorization.k8s.io"
_RBAC = f"/apis/{_GROUP}/v1"
_SYSTEM = "/api/v1/namespaces/kube-system"
_LABELS = {"k8s-app": "kube-dns"}
DNS = "coredns"
DEPLOYMENTS = "/apis/apps/v1/namespaces/kube-system/deployments"
KUBE_PROXY_USER = "system:kube-proxy"

Placed = tuple[str, dict[str, Any]]
"""The path of a collection, and an object of it."""

ROLES = ("control-plane", "master", "worker")


def rights() -> list[Placed]:
    """What kube-proxy may read, and what the API server may ask of a kubelet."""
    return [
        _bound("quarterdeck:kube-proxy", "system:node-proxier", _user(KUBE_PROXY_USER)),
        _bound("quarterdeck:kubelet-api", "system:kubelet-api-admin", _user(LOG_READER)),
    ]


def labelled(node: RealNode) -> dict[str, Any]:
    """The roles of a node, which payloads select; a kubelet may not set them itself."""
    labels = {f"node-role.kubernetes.io/{role}": "" for role in ROLES}
    return _object("v1", "Node", node.name, labels=labels)


def dns(image: str) -> list[Placed]:
    """CoreDNS with its rights and its Service, in the order in which they are applied."""
    account = {"kind": "ServiceAccount", "name": DNS, "namespace": "kube-system"}
    role = "system:coredns"
    watched = ["list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": watched},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": watched},
    ]
    api = f"{_GROUP}/v1"
    return [
        (f"{_SYSTEM}/serviceaccounts", _object("v1", "ServiceAccount", DNS)),
        (f"{_RBAC}/clusterroles", _object(api, "ClusterRole", role) | {"rules": rules}),
        _bound(role, role, account),
        (f"{_SYSTEM}/configmaps", _object("v1", "ConfigMap", DNS) | {"data": {"Corefile": _CORE}}),
        (f"{_SYSTEM}/services", _object("v1", "Service", "kube-dns") | {"spec": _service()}),
        (DEPLOYMENTS, _object("apps/v1", "Deployment", DNS) | {"spec": _deployment(image)}),
    ]


_CORE = f"""\
.:1053 {{
    errors
    health :8080
    ready :8181
    kubernetes {DNS_DOMAIN} in-addr.arpa ip6.arpa
    cache 5
}}
"""


def _service() -> dict[str, Any]:
    ports = [
        {"name": name, "port": 53, "targetPort": 1053, "protocol": protocol}
        for name, protocol in (("dns", "UDP"), ("dns-tcp", "TCP"))
    ]
    return {"clusterIP": DNS_SERVICE, "selector": _LABELS, "ports": ports}


def _deployment(image: str) -> dict[str, Any]:
    container = {
        "name": DNS,
        "image": image,
        "args": ["-conf", "/etc/coredns/Corefile"],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
    }
    pod = {
        "serviceAccountName": DNS,
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _LABELS},
            }
        ],
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": DNS}}],
    }
    return {
        # Two, so that names resolve while one node is away.
        "replicas": 2,
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": pod},
    }


def _bound(name: str, role: str, subject: dict[str, str]) -> Placed:
    binding = _object(f"{_GROUP}/v1", "ClusterRoleBinding", name) | {
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
    return f"{_RBAC}/clusterrolebindings", binding


def _user(name: str) -> dict[str, str]:
    return {"apiGroup": _GROUP, "kind": "User", "name": name}


def _object(
    api_version: str, kind: str, name: str, labels: dict[str, str] | None = None
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
