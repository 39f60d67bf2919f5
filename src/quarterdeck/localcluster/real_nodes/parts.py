"""The processes of a cluster with real nodes: the registry, the relay, and each node."""

import json
import os
import ssl
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

import msgspec
import yaml

from quarterdeck.localcluster import certificates, kubeconfig
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.localcluster.certificates import CertificateSpec, KeyPair
from quarterdeck.localcluster.components import Setup
from quarterdeck.localcluster.ports import LOOPBACK
from quarterdeck.localcluster.real_nodes import cgroups
from quarterdeck.localcluster.real_nodes.addresses import (
    CONTROL_PLANE,
    KUBELET_PORT,
    REGISTRY_PORT,
    RealNode,
)
from quarterdeck.localcluster.real_nodes.configuration import (
    CNI_CONFIGURATION,
    ETC,
    cni_configuration,
    containerd_configuration,
    kube_proxy_configuration,
    kubelet_configuration,
    registry_configuration,
    registry_host,
    resolver_configuration,
    sysctl_files,
)
from quarterdeck.localcluster.real_nodes.first_process import NodeOrder, encode
from quarterdeck.localcluster.real_nodes.objects import KUBE_PROXY_USER
from quarterdeck.localcluster.state import Layout
from quarterdeck.private_file import write_private

HOST_ACCESS = "host-access"
REGISTRY_COMPONENT = "registry"


def directory_of(layout: Layout) -> Path:
    """The files of real nodes and of the registry."""
    return layout.root / "real-nodes"


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/"}


class RegistryPart:
    """A registry of images, which the nodes and the machine reach."""

    def __init__(self, setup: Setup, program: Path) -> None:
        self.name = REGISTRY_COMPONENT
        self._pki = setup.layout.pki
        self._directory = directory_of(setup.layout) / "registry"
        self._file = self._directory / "config.yaml"
        self.command: Sequence[str] = [str(program), "serve", str(self._file)]
        self.environment: Mapping[str, str] = {"PATH": os.defpath}
        self.descriptors: Sequence[int] = ()

    def prepare(self) -> None:
        """Write its certificate and configuration."""
        data = self._directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        spec = CertificateSpec(
            name="registry",
            common_name="registry",
            server=True,
            hosts=("localhost", LOOPBACK, CONTROL_PLANE),
        )
        authority = certificates.load(self._pki, "ca")
        pair = certificates.issue(spec, authority, datetime.now(UTC))
        certificate, key = self._directory / "tls.crt", self._directory / "tls.key"
        write_private(certificate, pair.certificate)
        write_private(key, pair.key)
        configuration = registry_configuration(str(data), str(certificate), str(key))
        write_private(self._file, yaml.safe_dump(configuration).encode())

    def is_ready(self) -> bool:
        """Whether it answers."""
        trusted = certificates.certificate_path(self._pki, "ca")
        context = ssl.create_default_context(cafile=str(trusted))
        connection = HTTPSConnection(LOOPBACK, REGISTRY_PORT, context=context, timeout=2)
        try:
            connection.request("GET", "/v2/")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


class HostAccessPart:
    """The relay by which this machine reaches the API server and the registry."""

    def __init__(self, relays: Mapping[int, int]) -> None:
        """Relay each listening descriptor to a port on the cluster's own loopback."""
        self.name = HOST_ACCESS
        words = [f"{descriptor}:{LOOPBACK}:{port}" for descriptor, port in relays.items()]
        module = "quarterdeck.localcluster.real_nodes.relay"
        self.command: Sequence[str] = [sys.executable, "-P", "-m", module, *words]
        self.environment: Mapping[str, str] = _environment()
        self.descriptors: Sequence[int] = tuple(relays)

    def prepare(self) -> None:
        """Do nothing: its sockets are open."""

    def is_ready(self) -> bool:
        """Whether its process runs, which is all: connections wait until it accepts them."""
        return True


class NodeFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What the files of a node depend on beside the node itself."""

    setup: Setup
    programs: dict[str, Path]
    runc: Path
    pause: str
    """The image of each pod's first process."""
    network: int
    """The descriptor of the control plane's network namespace."""


class NodePart:
    """One real node."""

    def __init__(self, node: RealNode, files: NodeFiles) -> None:
        self.name = node.name
        self._node = node
        self._files = files
        layout = files.setup.layout
        self._pki = layout.pki
        self._api_port = files.setup.ports.kube_apiserver
        self._directory = directory_of(layout) / node.name
        self._cgroup = f"{cgroups.prefix_of(layout.root)}{node.name}"
        order = NodeOrder(
            number=node.number,
            count=files.setup.real_nodes,
            directory=self._directory,
            programs=files.programs,
            network=files.network,
        )
        module = "quarterdeck.localcluster.real_nodes"
        self.command: Sequence[str] = [sys.executable, "-P", "-m", module, encode(order)]
        self.environment: Mapping[str, str] = _environment()
        self.descriptors: Sequence[int] = (files.network,)

    def prepare(self) -> None:
        """Write the node's files, and make its cgroup anew."""
        cgroups.remove(self._cgroup)
        cgroups.create(self._cgroup)
        directory = self._directory
        for folder in ("etc", "var", "sysctl"):
            (directory / folder).mkdir(parents=True, exist_ok=True)
        for folder in ("lib", "log", "tmp", "cache"):
            (directory / "var" / folder).mkdir(exist_ok=True)
        run = directory / "var" / "run"
        if not run.is_symlink():
            run.symlink_to("/run")
        for sysctl, value in sysctl_files().items():
            (directory / "sysctl" / sysctl.replace("/", ".")).write_text(value)
        for name, content in self._etc().items():
            path = directory / "etc" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_private(path, content)

    def is_ready(self) -> bool:
        """Whether the kubelet answers and its Node is ready."""
        kubelet = Requests(KUBELET_PORT, self._pki, user="admin", host=self._node.address)
        if not kubelet.ready("/healthz"):
            return False
        try:
            api = Requests(self._api_port, self._pki, user="admin")
            found = api.send("GET", f"/api/v1/nodes/{self.name}")
        except OSError:
            return False
        conditions = found.json().get("status", {}).get("conditions", []) if found.ok else []
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def _etc(self) -> dict[str, bytes]:
        """The content of each file of the node's configuration."""
        node, files = self._node, self._files
        authority = certificates.load(self._pki, "ca")
        kubelet = self._issued(
            CertificateSpec(
                name="kubelet",
                common_name=f"system:node:{node.name}",
                organizations=("system:nodes",),
                client=True,
                server=True,
                hosts=(node.name, node.address),
            ),
            authority,
        )
        proxy = self._issued(
            CertificateSpec(name="kube-proxy", common_name=KUBE_PROXY_USER, client=True), authority
        )
        containerd = containerd_configuration(pause=files.pause, runc=str(files.runc))
        network = CNI_CONFIGURATION.removeprefix(f"{ETC}/")
        return {
            "ca.crt": authority.certificate,
            "kubelet.crt": kubelet.certificate,
            "kubelet.key": kubelet.key,
            "kubelet.kubeconfig": self._kubeconfig(authority, kubelet, "kubelet"),
            "kubelet.yaml": _yaml(kubelet_configuration(node, self._cgroup)),
            "kube-proxy.kubeconfig": self._kubeconfig(authority, proxy, "kube-proxy"),
            "kube-proxy.yaml": _yaml(kube_proxy_configuration(node)),
            "containerd.toml": containerd.encode(),
            f"certs.d/{CONTROL_PLANE}:{REGISTRY_PORT}/hosts.toml": registry_host().encode(),
            f"{network}/10-pods.conflist": json.dumps(cni_configuration(node)).encode(),
            "resolv.conf": resolver_configuration().encode(),
        }

    def _issued(self, spec: CertificateSpec, authority: KeyPair) -> KeyPair:
        return certificates.issue(spec, authority, datetime.now(UTC))

    def _kubeconfig(self, authority: KeyPair, pair: KeyPair, user: str) -> bytes:
        url = f"https://{CONTROL_PLANE}:{self._api_port}"
        return kubeconfig.with_certificate(url, authority.certificate, pair, user=user)


def _yaml(value: object) -> bytes:
    return yaml.safe_dump(value, sort_keys=False).encode()
