"""Process 1 of a real node: makes the node's file system and network, and runs its programs.

The caller is in a new PID namespace and holds the descriptor of the control plane's network
namespace. When this process ends, the kernel ends all processes of the node.
"""

import errno
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from quarterdeck.localcluster.real_nodes import libc
from quarterdeck.localcluster.real_nodes.addresses import RealNode, real_nodes
from quarterdeck.localcluster.real_nodes.configuration import (
    CONTAINERD_SOCKET,
    ETC,
    KUBELET_SYSCTLS,
)
from quarterdeck.localcluster.real_nodes.mounts import machines_mounts
from quarterdeck.localcluster.real_nodes.network import connect_node

RESTART_PERIOD = 1.0
SOCKET_TIMEOUT = 60.0
_POLL_PERIOD = 0.05
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
LOGS = Path("/var/log")
OWN_TEMPORARY = "/var/tmp"  # noqa: S108 - below the node's own /var


class NodeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to run as a node."""

    number: int
    count: int
    """How many real nodes the cluster has."""
    directory: Path
    """The node's own files: `etc`, `var`, `sysctl`."""
    programs: dict[str, Path]
    network: int
    """The descriptor of the control plane's network namespace."""


def encode(order: NodeOrder) -> str:
    """The order as JSON."""
    return msgspec.json.encode(order, enc_hook=str).decode()


def decode(text: str) -> NodeOrder:
    """The order in this JSON."""
    return msgspec.json.decode(text, type=NodeOrder, dec_hook=lambda kind, value: kind(value))


def run_node(order: NodeOrder) -> None:
    """Set the node up, then run and restart its programs; it returns never."""
    node = RealNode(order.number)
    socket.sethostname(node.name)
    make_file_system(order.directory)
    others = [one for one in real_nodes(order.count) if one != node]
    connect_node(node, others, order.network)
    os.close(order.network)
    Programs(order.programs).run(node)


def make_file_system(directory: Path) -> None:
    """Give this mount namespace the node's own /proc, /run, /var and sysctls.

    The machine's other files can be read here, and not changed. Directories are opened first,
    because the state may lie below what is covered.
    """
    libc.mount("", "/", flags=libc.MS_REC | libc.MS_PRIVATE)
    libc.mount("proc", "/proc", "proc", libc.MS_NOSUID | libc.MS_NODEV | libc.MS_NOEXEC)
    # The kubelet shares the mounts of volumes with containers.
    libc.mount("", "/", flags=libc.MS_REC | libc.MS_SHARED)
    etc, var, sysctl = (
        os.open(directory / name, os.O_PATH | os.O_DIRECTORY) for name in ("etc", "var", "sysctl")
    )
    for path in KUBELET_SYSCTLS:
        if Path("/proc/sys", path).exists():
            file = f"/proc/self/fd/{sysctl}/{path.replace('/', '.')}"
            libc.mount(file, f"/proc/sys/{path}", flags=libc.MS_BIND)
    libc.mount("tmpfs", "/run", "tmpfs", libc.MS_NOSUID | libc.MS_NODEV, "mode=755")
    libc.mount("", "/run", flags=libc.MS_SHARED)
    Path(ETC).mkdir(parents=True)
    libc.mount(f"/proc/self/fd/{etc}", ETC, flags=libc.MS_BIND)
    libc.mount(f"/proc/self/fd/{var}", "/var", flags=libc.MS_BIND)
    for descriptor in (etc, var, sysctl):
        os.close(descriptor)
    _seal()


def _seal() -> None:
    """Let the node only read the machine's files: a home directory may be a mount of its own."""
    mountinfo = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    for path, kept in machines_mounts(mountinfo).items():
        try:
            libc.mount("", path, flags=libc.MS_REMOUNT | libc.MS_BIND | libc.MS_RDONLY | kept)
        except OSError as error:
            # Another mount covers it, or root itself may not look into it.
            if error.errno not in (errno.ENOENT, errno.EINVAL, errno.EACCES):
                raise


def commands(node: RealNode, programs: Mapping[str, Path]) -> dict[str, list[str]]:
    """The command of each program, in the order in which they start."""
    return {
        "containerd": [str(programs["containerd"]), f"--config={ETC}/containerd.toml"],
        "kubelet": [
            str(programs["kubelet"]),
            f"--config={ETC}/kubelet.yaml",
            f"--kubeconfig={ETC}/kubelet.kubeconfig",
            f"--hostname-override={node.name}",
            f"--node-ip={node.address}",
            "--v=2",
        ],
        "kube-proxy": [str(programs["kube-proxy"]), f"--config={ETC}/kube-proxy.yaml", "--v=2"],
    }


class Programs:
    """The programs of a node, each started again when it ends."""

    def __init__(self, programs: Mapping[str, Path], logs: Path = LOGS) -> None:
        self._programs = programs
        self._logs = logs
        self._running: dict[int, str] = {}
        folders = dict.fromkeys(str(path.parent) for path in programs.values())
        self._path = ":".join([*folders, SYSTEM_PATH])

    def run(self, node: RealNode) -> None:
        """Start the programs, and wait for whatever ends in this PID namespace."""
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.chdir("/")
        every = commands(node, self._programs)
        for name, command in every.items():
            self.start(name, command)
            if name == "containerd":
                _wait_for_socket(Path(CONTAINERD_SOCKET))
        self.keep(every)

    def keep(self, every: Mapping[str, Sequence[str]]) -> None:
        """Wait for what ends, and start again what is a program of the node; it returns never."""
        while True:
            pid, _ = os.waitpid(-1, 0)
            if (ended := self._running.pop(pid, None)) is not None:
                time.sleep(RESTART_PERIOD)
                self.start(ended, every[ended])

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a program.

        Not by `subprocess`: it waits for earlier programs at the next start, and then `keep` never
        learns that they have ended.
        """
        environment = {"PATH": self._path, "HOME": OWN_TEMPORARY, "TMPDIR": OWN_TEMPORARY}
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        files = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self._logs / f"{name}.log"), flags, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        # Python ignores these itself, and what is ignored is inherited, by containers too.
        defaults = (signal.SIGPIPE, signal.SIGXFSZ)
        pid = os.posix_spawn(
            command[0], [*command], environment, file_actions=files, setsigdef=defaults
        )
        self._running[pid] = name


def _wait_for_socket(path: Path) -> None:
    deadline = time.monotonic() + SOCKET_TIMEOUT
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(_POLL_PERIOD)
