"""How an ingress controller is reached from outside its pods."""

from enum import StrEnum
from typing import Annotated

from quarterdeck.api.meta import Part
from quarterdeck.api.schema import default, keywords, one_of

HTTP_PORT, HTTPS_PORT, STATS_PORT = 80, 443, 1936
"""The ports on the host's network by default."""


class PublishingType(StrEnum):
    """The ways to publish an ingress controller."""

    LOAD_BALANCER_SERVICE = "LoadBalancerService"
    HOST_NETWORK = "HostNetwork"
    PRIVATE = "Private"
    NODE_PORT_SERVICE = "NodePortService"


_PORT = keywords(format="int32", minimum=0, maximum=65535)


class HostNetworkStrategy(Part):
    """The ports on the nodes' own addresses."""

    http_port: Annotated[int | None, _PORT, default(HTTP_PORT)] = None
    """The port for HTTP."""

    https_port: Annotated[int | None, _PORT, default(HTTPS_PORT)] = None
    """The port for HTTPS."""

    stats_port: Annotated[int | None, _PORT, default(STATS_PORT)] = None
    """The port for health checks and metrics."""


class EndpointPublishingStrategy(Part):
    """How an ingress controller is reached from outside its pods."""

    type: Annotated[str, one_of(PublishingType)]
    """LoadBalancerService: a Service of type LoadBalancer. HostNetwork: the router listens on the
    addresses of its nodes. NodePortService: a Service of type NodePort. Private: a Service that is
    reachable within the cluster only."""

    host_network: HostNetworkStrategy | None = None
    """The ports for the type HostNetwork."""

    @property
    def host_ports(self) -> tuple[int, int, int]:
        """The ports for HTTP, HTTPS and statistics on the host's network."""
        given = self.host_network or HostNetworkStrategy()
        return (
            _given(given.http_port, HTTP_PORT),
            _given(given.https_port, HTTPS_PORT),
            _given(given.stats_port, STATS_PORT),
        )


def _given(port: int | None, absent: int) -> int:
    return absent if port is None else port
