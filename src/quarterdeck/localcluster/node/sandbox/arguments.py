"""How a container's process is started, and entered later: bubblewrap's arguments, and orders.

Pure. A container has PID, mount, IPC and UTS namespaces of its own and the host's network, no
capabilities, and can gain none. It is a way to run, not a cage for hostile code.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec

from quarterdeck.localcluster.node.sandbox.mounts import (
    ROOT,
    Bind,
    Dev,
    Directory,
    Mount,
    Proc,
    ReadOnly,
    Symlink,
    Tmpfs,
)
from quarterdeck.localcluster.node.sandbox.proot_view import ProotView

BESIDE = "/proc"
"""Where a container's view lies, in the machine's own view, until its process has become another
user: any directory that is on every machine would do."""

_TO_BECOME = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_SYS_CHROOT")
"""What changing the user takes; they are lost with the change."""


class User(msgspec.Struct, frozen=True):
    """Whom a process runs as."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a container's process is started with."""

    command: Sequence[str]
    hostname: str
    variables: Mapping[str, str]
    mounts: Sequence[Mount]
    working_directory: str = "/"
    root: bool
    """Whether we are root: then no user namespace is needed, and other users can be taken."""
    user: User | None = None
    """Whom to become; only root can."""
    proot: ProotView | None = None
    """How it is shown its files where there are no namespaces; then all else is proot's, too."""


def options(sandbox: Sandbox) -> bytes:
    """Bubblewrap's options, each ended by a NUL, for its `--args`.

    Handed over by a file descriptor, because a command line is for all users to read and
    the variables may hold Secrets.
    """
    words = [
        # Without root, asked for by name: if it may not be had, bubblewrap says why.
        *([] if sandbox.root else ["--unshare-user"]),
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        *("--hostname", sandbox.hostname),
        "--as-pid-1",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
        *(_beside(sandbox) if sandbox.user else _alone(sandbox)),
        *("--cap-drop", "ALL"),
        *(word for name in _TO_BECOME if sandbox.user for word in ("--cap-add", name)),
    ]
    return b"".join(word.encode() + b"\0" for word in words)


def _alone(sandbox: Sandbox) -> Iterator[str]:
    """The container's view, directory and variables: bubblewrap executes the command itself."""
    for mount in sandbox.mounts:
        yield from _mount(mount, root=sandbox.root)
    yield from ("--chdir", sandbox.working_directory)
    for name, value in sandbox.variables.items():
        yield from ("--setenv", name, value)


def _beside(sandbox: Sandbox) -> Iterator[str]:
    """The machine's view with the container's inside: `inside` runs in the first, then moves.

    Loaded from the container's view it would run what the pod's volumes put over the machine's
    libraries, with the right to become any user.
    """
    yield from ("--ro-bind", "/", "/")
    if not any(isinstance(mount, Bind) and mount.target == ROOT for mount in sandbox.mounts):
        yield from ("--perms", "0755", "--tmpfs", BESIDE)
    for mount in sandbox.mounts:
        yield from _mount(mount, root=sandbox.root, below=BESIDE)


def _mount(mount: Mount, *, root: bool, below: str = "") -> Iterator[str]:
    match mount:
        case Bind(source=source, target=target, read_only=read_only):
            yield from ("--ro-bind" if read_only else "--bind", source, f"{below}{target}")
        case Tmpfs(target):
            # Sticky and open to all, as /tmp is: the process may run as any user.
            yield from ("--perms", "1777", "--tmpfs", f"{below}{target}")
        case Directory(target):
            yield from ("--perms", "0755", "--dir", f"{below}{target}")
        case Symlink(to, target):
            yield from ("--symlink", to, f"{below}{target}")
        case ReadOnly(target):
            yield from ("--remount-ro", f"{below}{target}")
        case Proc():
            yield from ("--proc", f"{below}/proc")
        case Dev():
            # Without root, a /dev of its own would put the process into a second user
            # namespace that cannot be entered from outside; the host's has its own modes.
            yield from ("--dev", f"{below}/dev") if root else ("--dev-bind", "/dev", "/dev")
            if not root:
                yield from ("--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108
        case _:
            assert_never(mount)
