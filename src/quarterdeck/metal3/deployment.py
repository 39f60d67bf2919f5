"""metal3's Deployment, from a valid configuration. Pure.

Every restart of its pod loses Ironic's database. So whoever manages it applies the same pod
template, and keeps the selector of a Deployment that exists: a selector cannot change.
"""

import hashlib
from datetime import timedelta

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.metal3_v1alpha1 import Provisioning
from quarterdeck.controller.metadata import owned_by
from quarterdeck.metal3.containers import SHARED, desired_containers, desired_init_containers
from quarterdeck.metal3.images import Images
from quarterdeck.metal3.names import ACCOUNT, DEPLOYMENT, LABELS, NAMESPACE

OPERAND = {"quarterdeck.dev/operand": "metal3"}
"""The label by which we find the pods, whatever the selector is."""
CONTROL_PLANE_ROLES = ("control-plane", "master")
DEPLOY_TIMEOUT = timedelta(minutes=5)
"""The time without progress after which a roll-out counts as failed."""
EVICTION_SECONDS = 120
"""How long the pod stays on a node that does not answer: its database is lost elsewhere."""


def desired_deployment(
    provisioning: Provisioning,
    images: Images,
    *,
    owner: str,
    current: Object | None,
    deadline: timedelta,
) -> Object:
    """The Deployment as its manager applies it; `owner` is the annotation of that manager.

    It is deleted with its Provisioning. After `deadline` without progress, its controller reports
    that the roll-out failed.
    """
    selector = (current or {}).get("spec", {}).get("selector") or {"matchLabels": LABELS}
    labels = {**LABELS, **(selector.get("matchLabels") or {}), **OPERAND}
    return {
        "metadata": {
            **owned_by(provisioning),
            "name": DEPLOYMENT,
            "namespace": NAMESPACE,
            "labels": LABELS,
            "annotations": {owner: ""},
        },
        "spec": {
            "replicas": 1,
            "progressDeadlineSeconds": int(deadline.total_seconds()),
            # Two pods would serve DHCP in the same network, on the same ports.
            "strategy": {"type": "Recreate"},
            "selector": selector,
            "template": {
                "metadata": {"labels": labels},
                "spec": _pod_spec(provisioning, images),
            },
        },
    }


def template_hash(deployment: Object) -> str:
    """A hash of the pod template; `metadata.generation` also changes with annotations."""
    template = msgspec.json.encode(deployment["spec"]["template"], order="deterministic")
    return hashlib.sha256(template).hexdigest()[:16]


def _pod_spec(provisioning: Provisioning, images: Images) -> Object:
    spec = provisioning.spec
    return {
        "serviceAccountName": ACCOUNT,
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "securityContext": {"runAsNonRoot": False},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [_has_role(role) for role in CONTROL_PLANE_ROLES]
                }
            }
        },
        "tolerations": _tolerations(),
        "volumes": [{"name": SHARED, "emptyDir": {}}],
        "initContainers": desired_init_containers(spec, images),
        "containers": desired_containers(spec, images),
    }


def _has_role(role: str) -> Object:
    key = f"node-role.kubernetes.io/{role}"
    return {"matchExpressions": [{"key": key, "operator": "Exists"}]}


def _tolerations() -> list[Object]:
    of_nodes = [
        {"key": f"node-role.kubernetes.io/{role}", "operator": "Exists", "effect": "NoSchedule"}
        for role in CONTROL_PLANE_ROLES
    ]
    of_faults = [
        {
            "key": f"node.kubernetes.io/{fault}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": EVICTION_SECONDS,
        }
        for fault in ("not-ready", "unreachable")
    ]
    return [*of_nodes, {"key": "CriticalAddonsOnly", "operator": "Exists"}, *of_faults]
