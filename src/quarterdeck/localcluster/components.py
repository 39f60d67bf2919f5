"""The command line of each component, a pure function of settings, paths and ports.

All components listen on loopback only. Each request needs a certificate or a token. Each component
is its own user to the API server.
"""

from pathlib import Path
from typing import Literal

import msgspec

from quarterdeck.localcluster.certificates import (
    LOG_READER,
    SERVICE_NETWORK,
    certificate_path,
    key_path,
    public_key_path,
)
from quarterdeck.localcluster.ports import LOOPBACK, Ports
from quarterdeck.localcluster.real_nodes.addresses import CONTROL_PLANE
from quarterdeck.localcluster.state import Layout

Component = Literal[
    "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "this-machine"
]

COMPONENTS: tuple[Component, ...] = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
)
"""The components of every cluster, each after those that it depends on."""

THIS_MACHINE: Literal["this-machine"] = "this-machine"
"""The node whose pods are processes, and its agent, an optional component."""

SIMULATED_NODE = "simulated"
POD_NETWORK = "10.244.0.0/16"


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the command lines."""

    layout: Layout
    ports: Ports
    stages: Path
    durable: bool = True
    """False lets etcd answer before its data is on disk: faster, for tests only."""
    audit: bool = False
    """Write every request, without bodies, to the audit log."""
    node_lease: int = 40
    """The duration of the nodes' Leases in seconds."""
    real_nodes: int = 0
    """How many real nodes there are; with any, all this is in a network namespace of its own."""

    @property
    def api_url(self) -> str:
        """The API server's address."""
        return f"https://{LOOPBACK}:{self.ports.kube_apiserver}"

    @property
    def etcd_url(self) -> str:
        """Etcd's address for the API server."""
        return f"https://{LOOPBACK}:{self.ports.etcd_client}"

    def certificate(self, name: str) -> str:
        """The path of a certificate, as an argument."""
        return str(certificate_path(self.layout.pki, name))

    def key(self, name: str) -> str:
        """The path of a private key, as an argument."""
        return str(key_path(self.layout.pki, name))


def arguments(component: Component, setup: Setup) -> list[str]:
    """The arguments of a component, without the program."""
    match component:
        case "etcd":
            return etcd_arguments(setup)
        case "kube-apiserver":
            return apiserver_arguments(setup)
        case "kube-controller-manager":
            return controller_manager_arguments(setup)
        case "kube-scheduler":
            return scheduler_arguments(setup)
        case "kwok":
            return kwok_arguments(setup)
        case "this-machine":
            return this_machine_arguments(setup)


def etcd_arguments(setup: Setup) -> list[str]:
    """An etcd of one member, which accepts certificates of its own authority only."""
    peer_url = f"https://{LOOPBACK}:{setup.ports.etcd_peer}"
    options = [
        "--name=local",
        f"--data-dir={setup.layout.etcd_data}",
        f"--listen-client-urls={setup.etcd_url}",
        f"--advertise-client-urls={setup.etcd_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=local={peer_url}",
        "--client-cert-auth",
        f"--trusted-ca-file={setup.certificate('etcd-ca')}",
        f"--cert-file={setup.certificate('etcd')}",
        f"--key-file={setup.key('etcd')}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={setup.certificate('etcd-ca')}",
        f"--peer-cert-file={setup.certificate('etcd-peer')}",
        f"--peer-key-file={setup.key('etcd-peer')}",
        "--log-level=warn",
    ]
    if not setup.durable:
        options.append("--unsafe-no-fsync")
    return options


def apiserver_arguments(setup: Setup) -> list[str]:
    """The kube-apiserver, the only client of etcd."""
    options = [
        *_reachable(setup),
        f"--secure-port={setup.ports.kube_apiserver}",
        f"--etcd-servers={setup.etcd_url}",
        f"--etcd-cafile={setup.certificate('etcd-ca')}",
        f"--etcd-certfile={setup.certificate('etcd-client')}",
        f"--etcd-keyfile={setup.key('etcd-client')}",
        f"--tls-cert-file={setup.certificate('kube-apiserver')}",
        f"--tls-private-key-file={setup.key('kube-apiserver')}",
        f"--client-ca-file={setup.certificate('ca')}",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={public_key_path(setup.layout.pki, 'service-account')}",
        f"--service-account-signing-key-file={setup.key('service-account')}",
        f"--kubelet-certificate-authority={setup.certificate('ca')}",
        f"--kubelet-client-certificate={setup.certificate('kubelet-client')}",
        f"--kubelet-client-key={setup.key('kubelet-client')}",
        # Only the simulated node has an ExternalIP: that of the agent that answers for it.
        "--kubelet-preferred-address-types=ExternalIP,InternalIP,Hostname",
        "--allow-privileged=true",
        "--profiling=false",
        # Measured: with clients that watch, a stop takes 60 s without this, and 1.3 s with it.
        "--shutdown-watch-termination-grace-period=1s",
    ]
    if setup.audit:
        options += [
            f"--audit-policy-file={setup.layout.audit_policy}",
            f"--audit-log-path={setup.layout.audit_log}",
            "--audit-log-mode=blocking",
            # Tests count requests in one file; by default it is rotated after 100 MB.
            "--audit-log-maxsize=10000",
        ]
    return options


def _reachable(setup: Setup) -> list[str]:
    """Where the API server listens, and what it publishes as its endpoint."""
    if setup.real_nodes:
        return [
            "--bind-address=0.0.0.0",
            f"--advertise-address={CONTROL_PLANE}",
            # No kube-proxy runs beside the control plane, so it asks endpoints of Services itself.
            "--enable-aggregator-routing=true",
        ]
    return [
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        # An endpoint must not be a loopback address, so the API server publishes none.
        "--endpoint-reconciler-type=none",
    ]


def controller_manager_arguments(setup: Setup) -> list[str]:
    """The kube-controller-manager, each of its controllers under its own ServiceAccount."""
    return [
        *_served("kube-controller-manager", setup.ports.kube_controller_manager, setup),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={setup.key('service-account')}",
        f"--root-ca-file={setup.certificate('ca')}",
        f"--cluster-signing-cert-file={setup.certificate('ca')}",
        f"--cluster-signing-key-file={setup.key('ca')}",
        # By default it makes a directory below /usr, if root runs it.
        f"--flex-volume-plugin-dir={setup.layout.root / 'volume-plugins'}",
        # Rate limits would only slow tests down on a loopback API server.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        # With the default Lease duration of 40 s these are Kubernetes' own defaults.
        f"--node-monitor-grace-period={setup.node_lease * 5 / 4}s",
        f"--node-monitor-period={setup.node_lease / 8}s",
    ]


def scheduler_arguments(setup: Setup) -> list[str]:
    """The kube-scheduler."""
    return [
        *_served("kube-scheduler", setup.ports.kube_scheduler, setup),
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]


def kwok_arguments(setup: Setup) -> list[str]:
    """kwok, which simulates the node `simulated` by our stages; it listens on no port."""
    return [
        f"--kubeconfig={setup.layout.kubeconfig_of('kwok')}",
        f"--config={setup.stages}",
        f"--manage-single-node={SIMULATED_NODE}",
        f"--cidr={POD_NETWORK}",
        "--node-port=0",
        f"--node-lease-duration-seconds={setup.node_lease}",
    ]


GO_SETTINGS = ("GOGC", "GOMEMLIMIT", "GOMAXPROCS")
"""The variables of Go's runtime that components inherit: they trade memory for processor time."""

AGENT_ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(128 * 1024)}
"""A fixed size from which glibc maps blocks of memory outside the heap, for the agent.

By default glibc raises this threshold when it frees the first large block. Then the buffers of TLS
connections, 256 kB each, fragment the heap. Measured over 120 rounds of pods: 19 MB were in use
throughout, while the heap grew from 21 to 29 MB, of which a trim returned 11.
"""


def this_machine_arguments(setup: Setup) -> list[str]:
    """The agent of the node `this-machine`: a module of ours, as arguments of Python."""
    return [
        "-m",
        "quarterdeck.localcluster.node",
        f"--kubeconfig={setup.layout.kubeconfig_of(THIS_MACHINE)}",
        f"--name={THIS_MACHINE}",
        f"--pods={setup.layout.pods}",
        f"--manifests={setup.layout.manifests}",
        f"--state-dir={setup.layout.root}",
        f"--mask={setup.layout.root}",
        f"--show={setup.layout.root / 'releases'}",
        f"--credentials={setup.layout.root / 'credentials'}",
        f"--port={setup.ports.this_machine}",
        f"--tls-certificate={setup.certificate(THIS_MACHINE)}",
        f"--tls-key={setup.key(THIS_MACHINE)}",
        f"--client-authority={setup.certificate('ca')}",
        f"--client-name={LOG_READER}",
        f"--lease-seconds={setup.node_lease}",
    ]


def _served(component: str, port: int, setup: Setup) -> list[str]:
    """The arguments that the controller manager and the scheduler share."""
    kubeconfig = setup.layout.kubeconfig_of(component)
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--client-ca-file={setup.certificate('ca')}",
        # The lookup is only for requests through an aggregating API server.
        "--authentication-skip-lookup=true",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={setup.certificate(component)}",
        f"--tls-private-key-file={setup.key(component)}",
        "--leader-elect=false",
        "--profiling=false",
    ]
