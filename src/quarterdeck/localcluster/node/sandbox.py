"""How a container's process is started: bubblewrap's arguments, and those that enter it later.

Pure. A container has PID, mount, IPC and UTS namespaces of its own and the host's network, no
capabilities, and can gain none. It is a way to run, not a cage for hostile code.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

import msgspec

from quarterdeck.localcluster.node.mounts import (
    Bind,
    Dev,
    Directory,
    Mount,
    Proc,
    ReadOnly,
    Symlink,
    Tmpfs,
)


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
        *(word for mount in sandbox.mounts for word in _mount(mount, root=sandbox.root)),
        *("--chdir", sandbox.working_directory),
        *(word for name, value in sandbox.variables.items() for word in ("--setenv", name, value)),
        *("--cap-drop", "ALL"),
        # What changing the user takes; it is lost with the change.
        *(["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"] if sandbox.user else []),
    ]
    return b"".join(word.encode() + b"\0" for word in words)


def program(sandbox: Sandbox) -> list[str]:
    """What bubblewrap executes: the command, as another user where one is wanted."""
    return [*_become(sandbox.user), *sandbox.command]


def entering(pid: int, command: Sequence[str], *, root: bool, user: User | None) -> list[str]:
    """A command line that runs a command inside a container, beside its process `pid`.

    It has no more rights than that process. Its variables are given to the program that is
    started so, and are not on the command line.
    """
    space = [] if root else ["--user", "--preserve-credentials"]
    enter = ["nsenter", "--target", str(pid), *space, "--mount", "--pid", "--ipc", "--uts"]
    drop = ["setpriv", "--no-new-privs", "--inh-caps=-all"]
    if root:
        drop += ["--bounding-set=-all"]
    if user:
        drop += _user_options(user)
    return [*enter, "--root", "--wd", "--", *drop, *command]


def _become(user: User | None) -> list[str]:
    return ["setpriv", "--inh-caps=-all", *_user_options(user)] if user else []


def _user_options(user: User) -> list[str]:
    groups = (
        ["--groups", ",".join(str(group) for group in user.groups)]
        if user.groups
        else ["--clear-groups"]
    )
    return ["--reuid", str(user.uid), "--regid", str(user.gid), *groups]


def _mount(mount: Mount, *, root: bool) -> Iterator[str]:
    match mount:
        case Bind(source=source, target=target, read_only=read_only):
            yield from ("--ro-bind" if read_only else "--bind", source, str(target))
        case Tmpfs(target):
            # Sticky and open to all, as /tmp is: the process may run as any user.
            yield from ("--perms", "1777", "--tmpfs", str(target))
        case Directory(target):
            yield from ("--perms", "0755", "--dir", str(target))
        case Symlink(to, target):
            yield from ("--symlink", to, str(target))
        case ReadOnly(target):
            yield from ("--remount-ro", str(target))
        case Proc():
            yield from ("--proc", "/proc")
        case Dev():
            # Without root, a /dev of its own would put the process into a second user
            # namespace that cannot be entered from outside; the host's has its own modes.
            yield from ("--dev", "/dev") if root else ("--dev-bind", "/dev", "/dev")
            if not root:
                yield from ("--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108
        case _:
            assert_never(mount)
