"""Leaves `spec.replicas` to a HorizontalPodAutoscaler. Pure.

Two writers of the same field would undo each other's writes. So if an autoscaler names an object,
the autoscaler owns its `spec.replicas`, and the manifest's value only applies at creation.
"""

from typing import Any

from quarterdeck.api.meta import Object, foreign
from quarterdeck.kube import owned_fields
from quarterdeck.payload.model import ObjectIdentity

AUTOSCALERS = foreign(
    "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True
)


def has_replicas(obj: Object) -> bool:
    """Whether the object sets `spec.replicas`."""
    spec = obj.get("spec")
    return isinstance(spec, dict) and spec.get("replicas") is not None


def target(autoscaler: Object) -> ObjectIdentity:
    """The object that an autoscaler scales."""
    ref: Any = (autoscaler.get("spec") or {}).get("scaleTargetRef") or {}
    group = str(ref.get("apiVersion") or "").rpartition("/")[0]
    namespace = str(autoscaler["metadata"].get("namespace") or "")
    return ObjectIdentity(group, str(ref.get("kind")), namespace, str(ref.get("name")))


def without_replicas(desired: Object, live: Object, manager: str) -> Object:
    """The desired object without the manifest's `spec.replicas`.

    If we own the live value, it stays in the desired object: a field without an owner becomes 1.
    """
    spec = {field: value for field, value in desired["spec"].items() if field != "replicas"}
    for operation in ("Apply", "Update"):
        if "f:replicas" in owned_fields(live, manager, operation).get("f:spec", {}):
            spec["replicas"] = live["spec"].get("replicas")
    return {**desired, "spec": spec}
