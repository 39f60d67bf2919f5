"""Stores how to enter a running container, for commands outside the agent.

Such a command has the view and the rights of the container.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.node.sandbox.arguments import User
from quarterdeck.localcluster.node.sandbox.orders import inside, open_order, order_to_enter
from quarterdeck.localcluster.node.sandbox.proot import KeeperOrders
from quarterdeck.localcluster.node.sandbox.proot_view import ProotView
from quarterdeck.localcluster.status import ProcessIdentity
from quarterdeck.private_file import write_private

TRIES_IN_EXEC, PAUSE_IN_EXEC = 50, 0.01
"""In the middle of an exec, the kernel shows no environment (18,062 of 156,220 reads of a process
that executes itself, up to 16 ms in a row). An environment that stays empty is empty."""


class NotEnterable(LocalClusterError):  # noqa: N818 - as its siblings, it says what is the case
    """The container does not run as a process of this machine."""


class ContainerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The process of a running container, and the user to join it as."""

    process: ProcessIdentity
    root: bool
    user: User | None = None
    proot: ProotView | None = None
    working_directory: str = "/"


def entry_path(pod_directory: Path, container: str) -> Path:
    """The path of a container's entry file."""
    return pod_directory / "containers" / f"{container}.json"


def write_entry(path: Path, entry: ContainerEntry) -> None:
    """Store an entry; only the node's user can read it."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_private(path, msgspec.json.encode(entry))


def read_entry(path: Path) -> ContainerEntry:
    """The entry of a running container; raises `NotEnterable` if it does not run."""
    try:
        entry = msgspec.json.decode(path.read_bytes(), type=ContainerEntry)
    except FileNotFoundError:
        raise NotEnterable(f"container {path.stem} was never started here") from None
    if not entry.process.is_alive:
        raise NotEnterable(f"container {path.stem} does not run now")
    return entry


def command_inside(
    entry: ContainerEntry, command: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    """The command line that runs a command inside, and its environment, which is empty.

    The command gets the variables of the container's process after the drop of its rights. This
    process has to exec the command line, because that inherits an open descriptor.
    """
    if entry.proot is not None:
        return _command_in_proot(entry, entry.proot, command), {}
    pid = entry.process.pid
    process = os.pidfd_open(pid)
    if not entry.process.is_alive:  # else it may be another one's by now
        raise NotEnterable("the container does not run now")
    os.set_inheritable(process, True)
    order = order_to_enter(
        (pid, process), command, root=entry.root, user=entry.user, variables=None
    )
    return inside(open_order(order)), {}


def variables_of(pid: int) -> dict[bytes, bytes]:
    """The environment of a process, also while it executes another program."""
    path = Path(f"/proc/{pid}/environ")
    words = path.read_bytes()
    for _ in range(TRIES_IN_EXEC):
        if words:
            break
        time.sleep(PAUSE_IN_EXEC)
        words = path.read_bytes()
    return dict(word.split(b"=", 1) for word in words.split(b"\0") if b"=" in word)


def _command_in_proot(entry: ContainerEntry, view: ProotView, command: Sequence[str]) -> list[str]:
    pid = entry.process.pid
    orders = KeeperOrders(
        view,
        command,
        variables_of(pid),
        entry.working_directory,
        parent=None,  # It may outlive its caller.
        beside=pid,
    )
    return orders.command
