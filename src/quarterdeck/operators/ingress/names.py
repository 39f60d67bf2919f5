"""The names and labels of what the operator makes for an IngressController. Pure.

The objects are in another namespace than the IngressController, or in none, so an owner reference
cannot lead back to it: the label `OWNER` does.
"""

from collections.abc import Callable

from quarterdeck.api.meta import Key, Object, TypedObject
from quarterdeck.api.operator_v1 import IngressController
from quarterdeck.controller.metadata import labels_of
from quarterdeck.kube import LabelRequirement, LabelSelector

NAMESPACE = "openshift-ingress"
"""The namespace of the routers."""
ROUTER_ACCOUNT = "router"
"""The ServiceAccount of the routers' pods."""
OWNER = "ingresscontroller.operator.openshift.io/owning-ingresscontroller"
"""The label of everything that is made for an IngressController: its name."""
POD_LABEL = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
"""The label by which a router's pods are selected: the name of the IngressController."""
LOG_SOCKET = "quarterdeck.dev/access-log-socket"
"""An annotation of an IngressController: `datagram` selects the lossy socket to the sidecar."""
CONFIG_HASH = "quarterdeck.dev/config-hash"
"""An annotation of the pods: the hash of their ConfigMaps, so that a change rolls the pods."""

ROUTER_PODS = LabelSelector(match_expressions=(LabelRequirement(key=POD_LABEL, operator="Exists"),))


def deployment(controller: str) -> Key:
    """The router's Deployment."""
    return Key(NAMESPACE, f"router-{controller}")


def ingress_class(controller: str) -> Key:
    """The IngressClass by which an Ingress chooses this controller."""
    return Key("", f"quarterdeck-{controller}")


def services(controller: str) -> dict[str, Key]:
    """The Service of each publishing strategy that has one."""
    return {
        "LoadBalancerService": Key(NAMESPACE, f"router-{controller}"),
        "NodePortService": Key(NAMESPACE, f"router-nodeport-{controller}"),
        "Private": Key(NAMESPACE, f"router-internal-{controller}"),
    }


def rivals(controller: str) -> set[str]:
    """The names of IngressControllers that would have a Service of this one's names.

    The Service of `internal-a` with a load balancer has the name of the internal Service of `a`.
    """
    prefixes = ("internal-", "nodeport-")
    longer = {f"{prefix}{controller}" for prefix in prefixes}
    shorter = {controller.removeprefix(prefix) for prefix in prefixes}
    return (longer | shorter) - {controller}


def owned_metadata(key: Key, controller: IngressController) -> Object:
    """The metadata of an object that is made for an IngressController."""
    named: Object = {"name": key.name, "labels": {OWNER: controller.metadata.name}}
    return named | {"namespace": key.namespace} if key.namespace else named


def labelled(label: str) -> Callable[[TypedObject | Object], list[str]]:
    """A function for indexes: the name of the IngressController in this label of an object."""

    def found(obj: TypedObject | Object) -> list[str]:
        name = labels_of(obj).get(label)
        return [name] if name else []

    return found


def to_controller(
    namespace: str, label: str = OWNER
) -> Callable[[TypedObject | Object], list[Key]]:
    """A function for watches: the key of the IngressController in this label of an object."""
    found = labelled(label)
    return lambda obj: [Key(namespace, name) for name in found(obj)]
