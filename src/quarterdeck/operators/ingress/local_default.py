"""The IngressController `default` of a local cluster. Pure.

It uses the network of this machine, on ports that need no right, and logs to its sidecar.
"""

from collections.abc import Mapping

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import INGRESS_CONTROLLERS, PublishingType
from quarterdeck.operators.ingress import OPERATOR
from quarterdeck.operators.ingress.report import DEFAULT


def local_objects(ports: Mapping[str, int]) -> list[Object]:
    """The IngressController, on these ports."""
    host_network = {f"{name}Port": number for name, number in ports.items()}
    return [
        {
            "apiVersion": INGRESS_CONTROLLERS.api_version,
            "kind": INGRESS_CONTROLLERS.kind,
            "metadata": {"name": DEFAULT, "namespace": OPERATOR.namespace},
            "spec": {
                # Two pods cannot have the same ports of one machine.
                "replicas": 1,
                "endpointPublishingStrategy": {
                    "type": PublishingType.HOST_NETWORK.value,
                    "hostNetwork": host_network,
                },
                "logging": {"access": {"destination": {"type": "Container"}}},
            },
        }
    ]
