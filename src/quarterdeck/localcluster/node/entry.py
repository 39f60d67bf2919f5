"""How to get into a running container from outside the agent: what the agent writes down.

A command that is run so sees what the container sees and may do no more.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.node.sandbox import User, entering
from quarterdeck.localcluster.state import write_private
from quarterdeck.localcluster.status import Identity


class NotEnterable(LocalClusterError):  # noqa: N818 - as its siblings, it says what is the case
    """The container does not run, or not as a process here."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The process of a running container, and as whom to join it."""

    process: Identity
    root: bool
    user: User | None = None


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
    """The command line that runs a command inside, and the variables that belong to it."""
    pid = entry.process.pid
    words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    return entering(pid, command, root=entry.root, user=entry.user), variables
