"""What real nodes need of this machine, checked before anything is built or started."""

import os
import shutil
from pathlib import Path

import msgspec

from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.real_nodes.configuration import CNI_PROGRAMS

_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = {
    "runc": "runc",
    "docker-registry": "docker-registry",
    "nft": "nftables",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
"""Each program with the Debian package that has it."""
_PLUGINS = ("bridge", "host-local", "loopback", "portmap")
_BRIDGE_FILTER = Path("/proc/sys/net/bridge")


class SystemPrograms(msgspec.Struct, frozen=True, kw_only=True):
    """The machine's programs that the cluster runs."""

    runc: Path
    registry: Path


def check_machine() -> SystemPrograms:
    """The machine's own programs; LocalClusterError, in one line, if real nodes cannot run here."""
    if os.geteuid() != 0:
        raise LocalClusterError(
            "real nodes need root, because they are made of namespaces and cgroups; run this as "
            "root, or leave out --real-nodes"
        )
    found = {name: shutil.which(name, path=_SYSTEM_PATH) for name in PROGRAMS}
    missing = {PROGRAMS[name] for name, path in found.items() if path is None}
    if not all(Path(CNI_PROGRAMS, plugin).exists() for plugin in _PLUGINS):
        missing.add("containernetworking-plugins")
    if missing:
        names = " ".join(sorted(missing))
        raise LocalClusterError(f"real nodes need more packages: apt-get install {names}")
    if not _BRIDGE_FILTER.exists():
        raise LocalClusterError(
            "Services on real nodes need the kernel module br_netfilter; load it with: "
            "modprobe br_netfilter"
        )
    return SystemPrograms(
        runc=Path(str(found["runc"])), registry=Path(str(found["docker-registry"]))
    )
