"""Whether a HorizontalPodAutoscaler scales an object, and what that leaves of its manifest. Pure.

Two who set the same number undo each other's work. So where an autoscaler names an object, its
`spec.replicas` is the autoscaler's, and the manifest's number is only what the object begins with.
"""

from typing import Any

from quarterdeck.api.meta import Object, foreign
from quarterdeck.kube import owned_fields
from quarterdeck.payload.model import Identity

AUTOSCALERS = foreign(
    "autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True
)


def has_replicas(obj: Object) -> bool:
    """Whether a manifest's object says how many replicas there are."""
    spec = obj.get("spec")
    return isinstance(spec, dict) and spec.get("replicas") is not None


def target(autoscaler: Object) -> Identity:
    """The object that an autoscaler scales."""
    ref: Any = (autoscaler.get("spec") or {}).get("scaleTargetRef") or {}
    group = str(ref.get("apiVersion") or "").rpartition("/")[0]
    namespace = str(autoscaler["metadata"].get("namespace") or "")
    return Identity(group, str(ref.get("kind")), namespace, str(ref.get("name")))


def without_replicas(desired: Object, live: Object, manager: str) -> Object:
    """What is wanted of an object that an autoscaler scales: as many replicas as there are.

    A number that only we own is kept as it is, because without an owner it would become 1.
    """
    spec = {field: value for field, value in desired["spec"].items() if field != "replicas"}
    for operation in ("Apply", "Update"):
        if "f:replicas" in owned_fields(live, manager, operation).get("f:spec", {}):
            spec["replicas"] = live["spec"].get("replicas")
    return {**desired, "spec": spec}
