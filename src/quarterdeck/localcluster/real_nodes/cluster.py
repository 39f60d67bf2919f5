"""Starts the real nodes of a cluster in their order, and removes what they leave."""

import asyncio
import os
import platform
import socket
import time
from collections.abc import Callable

from quarterdeck.localcluster.binaries import COREDNS_VERSION
from quarterdeck.localcluster.binaries.catalog import architecture
from quarterdeck.localcluster.certificates import certificate_path
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.localcluster.errors import LocalClusterError, PortTaken
from quarterdeck.localcluster.ports import LOOPBACK, check_ports, operator_ports
from quarterdeck.localcluster.real_nodes import cgroups, network, objects
from quarterdeck.localcluster.real_nodes.addresses import (
    REGISTRY_PORT,
    real_nodes,
)
from quarterdeck.localcluster.real_nodes.images import program_image, pushed_as
from quarterdeck.localcluster.real_nodes.parts import (
    HOST_ACCESS,
    REGISTRY_COMPONENT,
    HostAccessPart,
    NodeFiles,
    NodePart,
    RegistryPart,
    directory_of,
)
from quarterdeck.localcluster.real_nodes.requirements import check_machine
from quarterdeck.localcluster.state import Layout
from quarterdeck.registry.client import Registry
from quarterdeck.registry.push import push_image
from quarterdeck.web import Web

DNS_TIMEOUT = 180.0
_POLL_PERIOD = 0.2
_PROGRAMS = ("kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2")


class RealNodes:
    """The real nodes of one cluster, whose supervisor moves to a network namespace of its own."""

    def __init__(self, plane: ControlPlane, count: int, progress: Callable[[str], None]) -> None:
        """Move this thread to the cluster's network namespace, and add all parts to the plane."""
        self._plane = plane
        self._nodes = real_nodes(count)
        self._progress = progress
        system = check_machine()
        directory_of(plane.layout).mkdir(exist_ok=True)
        cgroups.remove(cgroups.prefix_of(plane.layout.root))
        api = plane.setup.ports.kube_apiserver
        self.registry_port = registry_port(plane.layout)
        check_ports({api: "kube-apiserver", self.registry_port: REGISTRY_COMPONENT})
        try:
            self._listeners = network.listen_on_machine([api, self.registry_port])
        except OSError as error:
            raise PortTaken(f"a port of the cluster is taken: {error}") from None
        network.leave_machine(self._nodes)
        self._namespace = os.open(network.NAMESPACE, os.O_RDONLY)
        arch = architecture(platform.machine())
        paths = plane.binaries.paths
        self._images = {
            "pause": program_image(paths["pause"], arch),
            "coredns": program_image(paths["coredns"], arch),
        }
        self._pause = pushed_as("pause", "1", self._images["pause"])
        self._dns = pushed_as("coredns", COREDNS_VERSION, self._images["coredns"])
        files = NodeFiles(
            setup=plane.setup,
            programs={name: paths[name] for name in _PROGRAMS},
            runc=system.runc,
            pause=str(self._pause.at(self._pause.digest)),
            network=self._namespace,
        )
        plane.add(RegistryPart(plane.setup, system.registry))
        plane.add(HostAccessPart(self._relays(self._listeners, api)))
        for node in self._nodes:
            plane.add(NodePart(node, files))

    def _relays(self, listeners: list[socket.socket], api: int) -> dict[int, int]:
        ports = (api, REGISTRY_PORT)
        return {one.fileno(): port for one, port in zip(listeners, ports, strict=True)}

    @property
    def registry(self) -> str:
        """The registry's address for the users of this machine."""
        return f"{LOOPBACK}:{self.registry_port}"

    def start(self) -> None:
        """Start everything beside the control plane, and return when names resolve in pods."""
        plane, requests = self._plane, self._plane.requests()
        self._progress("starting the registry")
        plane.start(REGISTRY_COMPONENT, HOST_ACCESS)
        self._progress("pushing the images of pause and CoreDNS")
        asyncio.run(self._push())
        for path, body in objects.rights():
            requests.apply(path, body)
        names = [node.name for node in self._nodes]
        self._progress(f"starting {', '.join(names)}")
        plane.start(*names)
        for node in self._nodes:
            requests.apply("/api/v1/nodes", objects.labelled(node))
        self._progress("starting CoreDNS")
        for path, body in objects.dns(str(self._dns.at(self._dns.digest))):
            requests.apply(path, body)
        self._wait_for_dns()

    def close(self) -> None:
        """Remove the cgroups of the nodes, which have ended."""
        cgroups.remove(cgroups.prefix_of(self._plane.layout.root))
        for listener in self._listeners:
            listener.close()
        os.close(self._namespace)

    async def _push(self) -> None:
        authority = certificate_path(self._plane.layout.pki, "ca")
        wanted = ((self._pause, self._images["pause"]), (self._dns, self._images["coredns"]))
        async with Web(ca_file=str(authority)) as web:
            registry = Registry(web)
            for target, made in wanted:
                await push_image(registry, target.tagged(target.tag), made)

    def _wait_for_dns(self) -> None:
        deadline = time.monotonic() + DNS_TIMEOUT
        path = f"{objects.DEPLOYMENTS}/{objects.DNS}"
        requests = self._plane.requests()
        while time.monotonic() < deadline:
            found = requests.send("GET", path)
            status = found.json().get("status", {}) if found.ok else {}
            if status.get("availableReplicas", 0) >= 1:
                return
            time.sleep(_POLL_PERIOD)
        raise LocalClusterError(
            f"CoreDNS was not available after {DNS_TIMEOUT:.0f} s; see the logs in "
            f"{directory_of(self._plane.layout)}/{self._nodes[0].name}/var/log"
        )


def registry_port(layout: Layout) -> int:
    """The registry's port on this machine's loopback, the same at each start."""
    return operator_ports(layout, "real-nodes", [REGISTRY_COMPONENT])[REGISTRY_COMPONENT]
