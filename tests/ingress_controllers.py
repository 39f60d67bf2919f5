"""IngressControllers and what was observed of them, as tests make them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import IngressController, IngressControllerStatus
from quarterdeck.operators.ingress.admission import ADMITTED, Admission
from quarterdeck.operators.ingress.observed import Observed

HOME = "openshift-ingress-operator"
ROUTERS = "openshift-ingress"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def ingress_controller(
    name: str = "default", annotations: Object | None = None, **spec: Any
) -> Object:
    """An IngressController as a user writes it."""
    metadata: Object = {"name": name, "namespace": HOME}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "IngressController",
        "metadata": metadata,
        "spec": spec,
    }


def typed(obj: Object) -> IngressController:
    """The object as the operator reads it."""
    return msgspec.json.decode(msgspec.json.encode(obj), type=IngressController)


def logging(destination: Object, **parameters: Any) -> Object:
    """The field `logging` of a spec with access logs."""
    return {"access": {"destination": destination, **parameters}}


def to_container(**parameters: Any) -> Object:
    """Access logs to the sidecar."""
    return logging({"type": "Container"}, **parameters)


def to_syslog(address: str = "192.0.2.9", port: int = 514, **parameters: Any) -> Object:
    """Access logs to a syslog endpoint."""
    syslog = {"address": address, "port": port}
    return logging({"type": "Syslog", "syslog": syslog}, **parameters)


def deployment(
    available: int = 2,
    *,
    wanted: int = 2,
    updated: int | None = None,
    rolled_out: bool = True,
    env: Mapping[str, str] | None = None,
) -> Object:
    """The Deployment of a router, with this many replicas available."""
    template = {"spec": pod("", env)["spec"]}
    updated = wanted if updated is None else updated
    least = wanted - wanted // 4
    reason = "NewReplicaSetAvailable" if rolled_out else "ReplicaSetUpdated"
    return {
        "metadata": {"name": "router-default", "namespace": ROUTERS, "generation": 1, "uid": "u"},
        "spec": {"replicas": wanted, "template": template},
        "status": {
            "observedGeneration": 1,
            "replicas": wanted,
            "updatedReplicas": updated,
            "availableReplicas": available,
            "conditions": [
                {"type": "Available", "status": str(available >= least)},
                {"type": "Progressing", "status": "True", "reason": reason},
            ],
        },
    }


def pod(name: str, variables: Mapping[str, str] | None = None, **status: Any) -> Object:
    """A pod of a router with these variables."""
    env = [{"name": key, "value": value} for key, value in (variables or {}).items()]
    return {
        "metadata": {"name": name, "namespace": ROUTERS},
        "spec": {"containers": [{"name": "router", "env": env}]},
        "status": status,
    }


def observed(
    obj: Object | None = None,
    *,
    admission: Admission = ADMITTED,
    status: IngressControllerStatus | None = None,
    **found: Any,
) -> Observed:
    """What the operator sees of an IngressController; by default, one that is well."""
    controller = typed(obj or ingress_controller())
    if status is not None:
        controller = msgspec.structs.replace(controller, status=status)
    return Observed(
        controller=controller, admission=admission, **{"deployment": deployment(), **found}
    )
