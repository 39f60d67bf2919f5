"""What real nodes could leave on this machine: interfaces, rules, mounts, cgroups, sysctls."""

import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from quarterdeck.localcluster.real_nodes.cgroups import hierarchies

# These count what the machine does, whoever does it.
_COUNTED = re.compile(
    r"random|/(nr_|dentry|inode|file-nr|aio-nr|ns_last_pid|nf_conntrack_count)|pty/nr"
    r"|sched_domain|fs/quota|perf_event_max_sample_rate|route/flush|compact_memory"
)
_CLUSTERS = "quarterdeck-"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine at one moment."""

    interfaces: tuple[str, ...]
    routes: tuple[str, ...]
    rules: str
    mounts: tuple[str, ...]
    cgroups: tuple[str, ...]
    """Those of clusters with real nodes; other cgroups come and go with other programs."""
    sysctls: Mapping[str, str]
    directories: tuple[str, ...]
    """Where kubelets, containerd and CNI plugins usually leave files."""


def machine() -> Machine:
    """The machine now."""
    return Machine(
        interfaces=tuple(sorted(path.name for path in Path("/sys/class/net").iterdir())),
        routes=tuple(_output("ip", "route").splitlines()),
        rules=_output("nft", "list", "ruleset"),
        mounts=tuple(sorted(_mounts())),
        cgroups=tuple(
            str(path)
            for root in hierarchies(Path("/proc/self/mountinfo").read_text())
            for path in root.glob(f"{_CLUSTERS}*")
        ),
        sysctls=_sysctls(Path("/proc/sys")),
        directories=tuple(path for path in _USUAL if Path(path).exists()),
    )


_USUAL = (
    "/etc/cni/net.d",
    "/run/cni",
    "/run/containerd",
    "/run/netns",
    "/run/quarterdeck",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
)


def differences(before: Machine, after: Machine) -> dict[str, object]:
    """What is not as it was, by name."""
    found: dict[str, object] = {}
    for name in Machine.__struct_fields__:
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            found[name] = _changed(one, other)
    return found


def _changed(one: object, other: object) -> object:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        names = sorted({*one, *other})
        return {
            key: (one.get(key), other.get(key)) for key in names if one.get(key) != other.get(key)
        }
    if isinstance(one, tuple) and isinstance(other, tuple):
        return sorted({*one} ^ {*other})
    return one, other


def _mounts() -> list[str]:
    # The mount's own number is new after each mount; the place and what is there are not.
    every = [
        line.split(" ", 3)[3] for line in Path("/proc/self/mountinfo").read_text().splitlines()
    ]
    # Somebody may build an image meanwhile.
    return [mount for mount in every if "/quarterdeck-image-" not in mount]


def _sysctls(root: Path) -> dict[str, str]:
    found = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if not _COUNTED.search(f"/{name}") and path.is_file():
            with suppress(OSError, UnicodeDecodeError):
                found[name] = path.read_text()
    return found


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
