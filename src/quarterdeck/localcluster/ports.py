"""The ports of a cluster: chosen once, stored with its state, and checked before each start.

Kubeconfigs and pods contain the API server's address, so a cluster never changes its ports.
"""

import errno
import random
import socket
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from quarterdeck.localcluster.errors import PortTaken
from quarterdeck.localcluster.state import Layout
from quarterdeck.private_file import write_private

LOOPBACK = "127.0.0.1"

CANDIDATES = range(20000, 30000)
"""Below Linux' range for outgoing connections, which could take a port between two starts."""


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """Where each component listens, on loopback."""

    kube_apiserver: int
    etcd_client: int
    etcd_peer: int
    kube_controller_manager: int
    kube_scheduler: int
    this_machine: int

    def by_component(self) -> dict[int, str]:
        """Each port with the component that listens there."""
        return {
            self.kube_apiserver: "kube-apiserver",
            self.etcd_client: "etcd",
            self.etcd_peer: "etcd",
            self.kube_controller_manager: "kube-controller-manager",
            self.kube_scheduler: "kube-scheduler",
            self.this_machine: "this-machine",
        }


def ports_of(layout: Layout, *, api_port: int | None = None) -> Ports:
    """The ports of this state directory, chosen and stored at the first call.

    `api_port` replaces the API server's port.
    """
    try:
        ports = msgspec.json.decode(layout.ports.read_bytes(), type=Ports)
    except (FileNotFoundError, msgspec.DecodeError):
        ports = choose_ports()
    if api_port is not None:
        ports = msgspec.structs.replace(ports, kube_apiserver=api_port)
        while len(ports.by_component()) < len(Ports.__struct_fields__):  # Two are the same.
            ports = msgspec.structs.replace(choose_ports(), kube_apiserver=api_port)
    write_private(layout.ports, msgspec.json.encode(ports))
    return ports


def operator_ports(layout: Layout, operator: str, names: Collection[str]) -> dict[str, int]:
    """The ports of an operator's objects by name, chosen and stored at the first call."""
    stored = _stored_operator_ports(layout)
    own = stored.get(operator, {})
    missing = [name for name in names if name not in own]
    if missing:
        taken = {*ports_of(layout).by_component(), *_by_holder(stored)}
        own = own | dict(zip(missing, _free_ports(len(missing), taken), strict=True))
        write_private(layout.operator_ports, msgspec.json.encode(stored | {operator: own}))
    return {name: own[name] for name in names}


def stored_operator_ports(layout: Layout) -> dict[int, str]:
    """Each port that was chosen for an operator's objects, with what it is for."""
    return _by_holder(_stored_operator_ports(layout))


def _stored_operator_ports(layout: Layout) -> dict[str, dict[str, int]]:
    try:
        return msgspec.json.decode(
            layout.operator_ports.read_bytes(), type=dict[str, dict[str, int]]
        )
    except (FileNotFoundError, msgspec.DecodeError):
        return {}


def _by_holder(stored: Mapping[str, Mapping[str, int]]) -> dict[int, str]:
    return {
        number: f"the operator {operator} ({name})"
        for operator, ports in stored.items()
        for name, number in ports.items()
    }


def choose_ports() -> Ports:
    """Different ports on which nobody listens now."""
    names = Ports.__struct_fields__
    return Ports(**dict(zip(names, _free_ports(len(names)), strict=True)))


def _free_ports(wanted: int, taken: Collection[int] = ()) -> list[int]:
    """Different ports on which nobody listens now, without those that are taken."""
    free: list[int] = []
    for port in random.sample(CANDIDATES, len(CANDIDATES)):
        if port not in taken and is_free(port):
            free.append(port)
        if len(free) == wanted:
            return free
    raise PortTaken(
        f"no {wanted} free ports on {LOOPBACK} between {CANDIDATES[0]} and {CANDIDATES[-1]}; "
        "stop what listens there"
    )


def check_ports(ports: Mapping[int, str], timeout: float = 2.0) -> None:
    """Raise an error that names a taken port, whose it is, and the program that listens on it.

    Wait for `timeout` seconds first: the components of a killed supervisor end a moment later.
    """
    deadline = time.monotonic() + timeout
    for port, owner in ports.items():
        while not is_free(port) and time.monotonic() < deadline:
            time.sleep(0.05)
        if not is_free(port):
            holder = holder_of(port)
            raise PortTaken(
                f"port {port} of {owner} is taken"
                + (f" by {holder}" if holder else "")
                + "; stop that, or let go of this cluster and its ports with: "
                "quarterdeck local down --purge"
            )


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        # The components do the same: a lingering connection of an earlier run does not matter.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except PermissionError:
            raise PortTaken(
                f"port {port} is not for ordinary users; choose one above 1023 with --port"
            ) from None
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def holder_of(port: int, proc: Path = Path("/proc")) -> str | None:
    """The program that listens on a port, as `name (pid N)`; None if it is not visible."""
    inodes = {
        f"socket:[{inode}]"
        for table in ("net/tcp", "net/tcp6")
        if (proc / table).exists()
        for inode in listening_inodes((proc / table).read_text(), port)
    }
    for process in proc.glob("[0-9]*"):
        with suppress(OSError):  # It has ended, or belongs to another user.
            if any(_leads_to(link, inodes) for link in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} (pid {process.name})"
    return None


def _leads_to(link: Path, targets: set[str]) -> bool:
    try:
        return str(link.readlink()) in targets
    except OSError:  # It is closed by now.
        return False


def listening_inodes(table: str, port: int) -> list[str]:
    """The socket inodes that listen on a port, from the text of /proc/net/tcp."""
    listen = "0A"
    found = []
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[3] == listen and int(fields[1].rpartition(":")[2], 16) == port:
            found.append(fields[9])
    return found
