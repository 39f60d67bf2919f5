"""The addresses of a cluster with real nodes: control plane, registry, nodes and pods. Pure.

They are the same in every cluster, because each has network namespaces of its own.
"""

from collections.abc import Iterable

import msgspec

CONTROL_PLANE = "10.200.0.1"
PREFIX_LENGTH = 24
BRIDGE = "nodes"
"""The bridge in the control plane's network namespace, to which all nodes are connected."""

REGISTRY_PORT = 5000
REGISTRY = f"{CONTROL_PLANE}:{REGISTRY_PORT}"
"""The registry's name in image references, for nodes and pods."""

PODS = "10.245.0.0/16"
"""The pods of all real nodes; those of the simulated node are in another network."""
DNS_SERVICE = "10.96.0.10"
DNS_DOMAIN = "cluster.local"
KUBELET_PORT = 10250

MOST_NODES = 9


class RealNode(msgspec.Struct, frozen=True):
    """One node, by its number."""

    number: int

    @property
    def name(self) -> str:
        """The name of the Node object and of the component."""
        return f"node-{self.number}"

    @property
    def address(self) -> str:
        """Its address on the bridge."""
        return f"10.200.0.{10 + self.number}"

    @property
    def pods(self) -> str:
        """The network of its pods."""
        return f"10.245.{self.number}.0/24"

    @property
    def port(self) -> str:
        """The name of its end on the bridge."""
        return f"port-{self.number}"


def node_names(components: Iterable[str]) -> list[str]:
    """The names of real nodes among those of all components."""
    known = {node.name for node in real_nodes(MOST_NODES)}
    return [name for name in components if name in known]


def real_nodes(count: int) -> tuple[RealNode, ...]:
    """The nodes of a cluster with so many real nodes."""
    return tuple(RealNode(number) for number in range(1, count + 1))
