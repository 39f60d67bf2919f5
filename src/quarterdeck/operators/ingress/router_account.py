"""The account of the routers and its rights, which come with the release. Pure data.

A router reads what it routes to. It writes events about objects that it cannot use, and the status
of pods in its own namespace, to report on its own pod whether access lines arrive.
"""

from quarterdeck.api.meta import Object
from quarterdeck.operators.ingress.names import NAMESPACE, ROUTER_ACCOUNT

_GROUP = "rbac.authorization.k8s.io"
_ROLE = "quarterdeck-router"
_SUBJECT = {"kind": "ServiceAccount", "name": ROUTER_ACCOUNT, "namespace": NAMESPACE}


def _rule(group: str, resources: list[str], verbs: list[str]) -> Object:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _binding(kind: str, metadata: Object) -> Object:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": _ROLE},
        "subjects": [_SUBJECT],
    }


OBJECTS: tuple[Object, ...] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": ROUTER_ACCOUNT, "namespace": NAMESPACE},
    },
    {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": _ROLE},
        "rules": [
            _rule("networking.k8s.io", ["ingresses"], ["list", "watch"]),
            _rule("", ["services", "namespaces", "nodes"], ["list", "watch"]),
            _rule("discovery.k8s.io", ["endpointslices"], ["list", "watch"]),
            # TLS certificates are in Secrets of any namespace, named by Ingress objects.
            _rule("", ["secrets"], ["list", "watch"]),
            _rule("events.k8s.io", ["events"], ["create", "patch"]),
        ],
    },
    _binding("ClusterRole", {"name": _ROLE}),
    {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "Role",
        "metadata": {"name": _ROLE, "namespace": NAMESPACE},
        "rules": [_rule("", ["pods"], ["get"]), _rule("", ["pods/status"], ["patch"])],
    },
    _binding("Role", {"name": _ROLE, "namespace": NAMESPACE}),
)
