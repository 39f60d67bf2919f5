"""The objects that an IngressController is made of, as desired. Pure.

The ConfigMaps belong to the Deployment: the garbage collector removes them with it.
"""

import msgspec

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operator_v1 import INGRESS_CONTROLLERS, IngressController, PublishingType
from quarterdeck.controller.metadata import owned_by
from quarterdeck.operators.ingress import names
from quarterdeck.operators.ingress.logging.additions import Additions
from quarterdeck.operators.ingress.router_pod import desired_pod_template, logging_additions
from quarterdeck.operators.ingress.settings import Settings

CLASS_CONTROLLER = "quarterdeck.dev/ingress-router"
"""The `spec.controller` of our IngressClasses."""

_SERVICE_TYPES = {
    PublishingType.LOAD_BALANCER_SERVICE: "LoadBalancer",
    PublishingType.NODE_PORT_SERVICE: "NodePort",
    PublishingType.PRIVATE: "ClusterIP",
}


class Operands(msgspec.Struct, frozen=True, kw_only=True):
    """The desired objects of one IngressController."""

    deployment: Object
    config_maps: dict[str, Object]
    """Their data by name; `desired_config_map` makes them when the Deployment exists."""
    service: Object | None
    """None on the host's network."""
    ingress_class: Object


def desired_operands(
    controller: IngressController, settings: Settings, added: Additions | None = None
) -> Operands:
    """The objects of an admitted IngressController; `added` is what its logging adds, if known."""
    added = logging_additions(controller, settings) if added is None else added
    return Operands(
        deployment=desired_deployment(
            controller, desired_pod_template(controller, added, settings)
        ),
        config_maps={name: dict(data) for name, data in added.config_maps.items()},
        service=desired_service(controller),
        ingress_class=desired_ingress_class(controller),
    )


def desired_deployment(controller: IngressController, template: Object) -> Object:
    """The router's Deployment."""
    key = names.deployment(controller.metadata.name)
    # Two pods on the host's network cannot have the same node, and there may be no other.
    on_host = controller.strategy.type == PublishingType.HOST_NETWORK
    rolling = {"maxUnavailable": "25%", "maxSurge": 0 if on_host else "25%"}
    return {
        "metadata": names.owned_metadata(key, controller),
        "spec": {
            "replicas": controller.replicas,
            "selector": {"matchLabels": {names.POD_LABEL: controller.metadata.name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": template,
        },
    }


def desired_config_map(
    controller: IngressController, deployment: Object, name: str, data: Object
) -> Object:
    """A ConfigMap of the router's pods; the Deployment owns it."""
    key = Key(names.NAMESPACE, name)
    owner = owned_by(deployment)
    return {"metadata": names.owned_metadata(key, controller) | owner, "data": data}


def desired_service(controller: IngressController) -> Object | None:
    """The Service of the publishing strategy; None on the host's network."""
    strategy = controller.strategy.type
    key = names.services(controller.metadata.name).get(strategy)
    if key is None:
        return None
    spec: Object = {
        "type": _SERVICE_TYPES[PublishingType(strategy)],
        "selector": {names.POD_LABEL: controller.metadata.name},
        "ports": [
            {"name": name, "port": port, "protocol": "TCP", "targetPort": name}
            for name, port in (("http", 80), ("https", 443))
        ],
    }
    if strategy == PublishingType.PRIVATE:
        metrics = {"name": "metrics", "port": 1936, "protocol": "TCP", "targetPort": "metrics"}
        spec["ports"].append(metrics)
    else:
        # Otherwise the access lines have the address of a node instead of the client's.
        spec["externalTrafficPolicy"] = "Local"
    return {"metadata": names.owned_metadata(key, controller), "spec": spec}


def desired_ingress_class(controller: IngressController) -> Object:
    """The IngressClass by which an Ingress chooses this controller."""
    key = names.ingress_class(controller.metadata.name)
    parameters = {
        "apiGroup": INGRESS_CONTROLLERS.group,
        "kind": INGRESS_CONTROLLERS.kind,
        "name": controller.metadata.name,
        "namespace": controller.metadata.namespace,
        "scope": "Namespace",
    }
    return {
        "metadata": names.owned_metadata(key, controller),
        "spec": {"controller": CLASS_CONTROLLER, "parameters": parameters},
    }
