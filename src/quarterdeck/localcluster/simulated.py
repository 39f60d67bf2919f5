"""The node `simulated`: its objects, and the rights of kwok, which simulates it.

The stages in `manifests/stages.yaml` define how its pods behave.
"""

from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.localcluster.api_request import Requests
from quarterdeck.localcluster.components import SIMULATED_NODE

STAGES = Path(__file__).parent / "manifests" / "stages.yaml"

KUBELET_PORT_ANNOTATION = "quarterdeck.dev/kubelet-port"
"""An annotation on the node, from which the stages write its status."""

TAINT = {"key": "quarterdeck.dev/node", "value": "simulated", "effect": "NoSchedule"}

_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{SIMULATED_NODE}"

_USER = "system:quarterdeck:simulated-node"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_NODE_LEASES = "kube-node-lease"


class CollectionObject(msgspec.Struct, frozen=True):
    """An object and the collection that it belongs to."""

    collection: str
    body: dict[str, Any]


def desired_manifests(
    kubelet_port: int, *, beside_real_nodes: bool = False
) -> list[CollectionObject]:
    """The objects that kwok needs before it starts, in order."""
    node = desired_node(kubelet_port)
    if beside_real_nodes:
        node["spec"] = {"taints": [TAINT]}
    return [
        CollectionObject("/api/v1/nodes", node),
        CollectionObject(f"{_RBAC}/clusterroles", _role("ClusterRole", _CLUSTER_RULES)),
        CollectionObject(f"{_RBAC}/clusterrolebindings", _binding("ClusterRole")),
        # The API server creates this namespace too, but only some time after it is ready.
        CollectionObject("/api/v1/namespaces", _object("v1", "Namespace", _NODE_LEASES)),
        CollectionObject(f"{_RBAC}/namespaces/{_NODE_LEASES}/roles", _role("Role", _LEASE_RULES)),
        CollectionObject(f"{_RBAC}/namespaces/{_NODE_LEASES}/rolebindings", _binding("Role")),
    ]


def prepare_node(requests: Requests, kubelet_port: int, *, beside_real_nodes: bool = False) -> None:
    """Apply the objects that kwok needs before it starts.

    At `kubelet_port` the agent of this-machine answers for the pods of this node. Beside real nodes
    it has a taint, so that only pods come which ask for it.
    """
    for manifest in desired_manifests(kubelet_port, beside_real_nodes=beside_real_nodes):
        requests.apply(manifest.collection, manifest.body)
    # A new kwok would wait until the Lease of an earlier one expires.
    requests.send("DELETE", _LEASE)


def is_ready(requests: Requests) -> bool:
    """Whether kwok holds the node's Lease and the node is ready."""
    try:
        node = requests.send("GET", f"/api/v1/nodes/{SIMULATED_NODE}")
        return node.ok and _is_ready(node.json()) and requests.send("GET", _LEASE).ok
    except OSError:
        return False


def desired_node(kubelet_port: int) -> dict[str, Any]:
    """The Node, with the role labels that real payloads select; kwok writes its status."""
    node = _object("v1", "Node", SIMULATED_NODE)
    node["metadata"]["annotations"] = {KUBELET_PORT_ANNOTATION: str(kubelet_port)}
    node["metadata"]["labels"] = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": SIMULATED_NODE,
        "kubernetes.io/os": "linux",
        "node-role.kubernetes.io/control-plane": "",
        "node-role.kubernetes.io/master": "",
        "quarterdeck.dev/node": SIMULATED_NODE,
    }
    return node


_CLUSTER_RULES = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
    {
        "apiGroups": [""],
        "resources": ["nodes/status"],
        "resourceNames": [SIMULATED_NODE],
        "verbs": ["patch"],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "delete"]},
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
]

_LEASE_RULES = [
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "list", "watch", "create", "update"],
    },
]


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _object(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


def _role(kind: str, rules: list[dict[str, list[str]]]) -> dict[str, Any]:
    return _object("rbac.authorization.k8s.io/v1", kind, _USER) | {"rules": rules}


def _binding(kind: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return _object(f"{group}/v1", f"{kind}Binding", _USER) | {
        "roleRef": {"apiGroup": group, "kind": kind, "name": _USER},
        "subjects": [{"apiGroup": group, "kind": "User", "name": _USER}],
    }
