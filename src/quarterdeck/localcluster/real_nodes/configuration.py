"""The configuration files of a real node and of the registry, as values. Pure."""

from collections.abc import Mapping
from typing import Any

from quarterdeck.localcluster.real_nodes.addresses import (
    DNS_DOMAIN,
    DNS_SERVICE,
    PODS,
    REGISTRY,
    REGISTRY_PORT,
    RealNode,
)

ETC = "/run/quarterdeck/etc"
"""Where a node finds its configuration, in its own mount namespace."""
CNI_PROGRAMS = "/usr/lib/cni"
CNI_CONFIGURATION = f"{ETC}/net.d"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"

KUBELET_SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What the kubelet sets for the whole machine. In a node's mount namespace, files with these values
cover the sysctls, so the kubelet finds them as it wants and the machine keeps its own."""


def kubelet_configuration(node: RealNode, cgroup: str) -> dict[str, Any]:
    """The kubelet's configuration; `cgroup` is the cgroup above all pods of the node."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{ETC}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{ETC}/kubelet.crt",
        "tlsPrivateKeyFile": f"{ETC}/kubelet.key",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": ["pods"],
        # The machine decides about both; a kubelet would refuse to start.
        "failCgroupV1": False,
        "failSwapOn": False,
        # Without it eviction and statistics fail.
        "localStorageCapacityIsolation": True,
        # The disk is the machine's own: a node must not evict pods because others fill it.
        "evictionHard": {"memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "healthzBindAddress": "127.0.0.1",
        "resolvConf": f"{ETC}/resolv.conf",
        "clusterDNS": [DNS_SERVICE],
        "clusterDomain": DNS_DOMAIN,
        "serializeImagePulls": False,
        # By default it makes a directory below /usr.
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "maxPods": 100,
    }


def kube_proxy_configuration(node: RealNode) -> dict[str, Any]:
    """kube-proxy's configuration, with nftables in the node's own network namespace."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": f"{ETC}/kube-proxy.kubeconfig"},
        "clusterCIDR": PODS,
        "hostnameOverride": node.name,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        # The size of the connection table is the machine's.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def cni_configuration(node: RealNode) -> dict[str, Any]:
    """The network of the node's pods: a bridge, and ports of the node for those that ask."""
    bridge = {
        "type": "bridge",
        "bridge": "pods",
        "isGateway": True,
        "hairpinMode": True,
        "ipMasq": False,
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": node.pods}]],
            "routes": [{"dst": "0.0.0.0/0"}],
            # After a crash nobody gives addresses back, so they are kept until the node ends.
            "dataDir": "/run/cni",
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, portmap]}


def containerd_configuration(*, pause: str, runc: str) -> str:
    """Containerd's configuration; `pause` is the image of each pod's first process."""
    images = "io.containerd.cri.v1.images"
    runtime = "io.containerd.cri.v1.runtime"
    unused = ("snapshotter.v1.blockfile", "snapshotter.v1.erofs", "nri.v1.nri")
    disabled = ", ".join(f'"io.containerd.{name}"' for name in unused)
    return f"""\
version = 3
disabled_plugins = [{disabled}]

[plugins."{images}"]
  snapshotter = "overlayfs"
  [plugins."{images}".pinned_images]
    sandbox = "{pause}"
  [plugins."{images}".registry]
    config_path = "{ETC}/certs.d"

[plugins."{runtime}"]
  restrict_oom_score_adj = true
  [plugins."{runtime}".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."{runtime}".containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      SystemdCgroup = false
  [plugins."{runtime}".cni]
    bin_dirs = ["{CNI_PROGRAMS}"]
    conf_dir = "{CNI_CONFIGURATION}"
"""


def registry_host() -> str:
    """Containerd's `hosts.toml` for the registry: where it is, and whom to trust."""
    return f"""\
server = "https://{REGISTRY}"

[host."https://{REGISTRY}"]
  capabilities = ["pull", "resolve"]
  ca = "{ETC}/ca.crt"
"""


def registry_configuration(data: str, certificate: str, key: str) -> dict[str, Any]:
    """The registry's configuration: files in a directory, TLS, no log-in."""
    return {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": data}, "delete": {"enabled": True}},
        # All addresses of its network namespace: its own, and loopback for the machine's users.
        "http": {"addr": f":{REGISTRY_PORT}", "tls": {"certificate": certificate, "key": key}},
    }


def resolver_configuration() -> str:
    """The node's own resolver: what pods get that do not ask for the cluster's DNS."""
    return f"nameserver {DNS_SERVICE}\n"


def sysctl_files() -> Mapping[str, str]:
    """By path below /proc/sys: what covers it in the node's mount namespace."""
    return {path: f"{value}\n" for path, value in KUBELET_SYSCTLS.items()}
