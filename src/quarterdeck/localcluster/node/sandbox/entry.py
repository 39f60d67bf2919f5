"""How to get into a running container from outside the agent: what the agent writes down.

A command that is run so sees what the container sees and may do no more.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.node.sandbox.arguments import User
from quarterdeck.localcluster.node.sandbox.orders import inside, open_order, order_to_enter
from quarterdeck.localcluster.node.sandbox.proot import KeeperOrders
from quarterdeck.localcluster.node.sandbox.proot_view import ProotView
from quarterdeck.localcluster.state import write_private
from quarterdeck.localcluster.status import ProcessIdentity


class NotEnterable(LocalClusterError):  # noqa: N818 - as its siblings, it says what is the case
    """The container does not run, or not as a process here."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The process of a running container, and as whom to join it."""

    process: ProcessIdentity
    root: bool
    user: User | None = None
    proot: ProotView | None = None
    working_directory: str = "/"


def entry_path(pod_directory: Path, container: str) -> Path:
    """Where the entry of a container is written down."""
    return pod_directory / "containers" / f"{container}.json"


def write_entry(path: Path, entry: Entry) -> None:
    """Write an entry down, for the node's user alone."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_private(path, msgspec.json.encode(entry))


def read_entry(path: Path) -> Entry:
    """The entry of a container that runs now."""
    try:
        entry = msgspec.json.decode(path.read_bytes(), type=Entry)
    except FileNotFoundError:
        raise NotEnterable(f"container {path.stem} was never started here") from None
    if not entry.process.is_alive:
        raise NotEnterable(f"container {path.stem} does not run now")
    return entry


def command_inside(entry: Entry, command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The command line that runs a command inside, and the variables to start it with: none.

    The command gets those of the container's process, once it has no more rights than that. To
    be executed by this process, since an order that is left open goes with it.
    """
    if entry.proot is not None:
        return _command_in_proot(entry, entry.proot, command), {}
    order = order_to_enter(
        entry.process.pid, command, root=entry.root, user=entry.user, variables=None
    )
    return inside(open_order(order)), {}


def _command_in_proot(entry: Entry, view: ProotView, command: Sequence[str]) -> list[str]:
    pid = entry.process.pid
    words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    orders = KeeperOrders(
        view,
        command,
        dict(word.split(b"=", 1) for word in words if b"=" in word),
        entry.working_directory,
        parent=None,  # whoever called us may go on without
        beside=pid,
    )
    return orders.command
