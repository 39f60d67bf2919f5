"""Bubblewrap's arguments for a container's process. Pure.

A container has its own PID, mount, IPC and UTS namespaces and the host's network. It has no
capabilities, and can gain none. This isolation is not meant for hostile code.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

NEW_ROOT = "/proc"
"""The path of the container's root in the machine's view, until its process has changed its user.
Any directory that exists on every machine would do."""

_SOURCES = "/dev/shm"  # noqa: S108
"""Where a bubblewrap around another one puts what that one mounts: in a tmpfs of its own."""

_TO_BECOME = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_SYS_CHROOT")
"""The capabilities that a change of the user needs; the change drops them."""


class User(msgspec.Struct, frozen=True):
    """The user and groups of a process."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """The command, environment, mounts and user of a container's process."""

    command: Sequence[str]
    hostname: str
    variables: Mapping[str, str]
    mounts: Sequence[Mount]
    working_directory: str = "/"
    root: bool
    """Whether we are root: then there is no user namespace, and the process can change its user."""
    user: User | None = None
    """The user to change to; only root can."""
    proot: ProotView | None = None
    """The file system for proot; None if the container runs in namespaces."""


def options(sandbox: Sandbox) -> bytes:
    """Bubblewrap's options for its `--args`, each with a NUL at its end.

    They are passed by a file descriptor, because all users can read a command line, and variables
    may contain Secrets.
    """
    words = [
        # Explicit without root, so that bubblewrap reports why it is not allowed.
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
    return _joined(words)


def has_mounts_in_volumes(sandbox: Sandbox) -> bool:
    """Whether a mount point lies in a volume, where a container may have put a link."""
    volumes = {
        mount.target
        for mount in sandbox.mounts
        if isinstance(mount, Bind) and (not mount.read_only or mount.source != str(mount.target))
    }
    return any(not volumes.isdisjoint(mount.target.parents) for mount in sandbox.mounts)


def behind_a_read_only_machine(sandbox: Sandbox) -> tuple[bytes, Sandbox]:
    """Options of a bubblewrap around the first, in which all of the machine is read-only.

    bubblewrap makes mount points with all its rights, and follows links: one in a volume that leads
    out of it would have files made anywhere on the machine. Returns the sandbox as it is to be
    inside: what it may write to is found in a place where nobody puts links.
    """
    words = [] if sandbox.root else ["--unshare-user"]
    words += ["--die-with-parent", "--ro-bind", "/", "/", "--bind", "/proc", "/proc"]
    # Without root, nothing can be made in the machine's own.
    words += ["--dev", "/dev"] if sandbox.root else ["--dev-bind", "/dev", "/dev"]
    words += ["--tmpfs", _SOURCES]
    mounts: list[Mount] = []
    for number, mount in enumerate(sandbox.mounts):
        if isinstance(mount, Bind) and not mount.read_only:
            source = f"{_SOURCES}/{number}"
            words += ["--bind", mount.source, source]
            mounts.append(msgspec.structs.replace(mount, source=source))
        else:
            mounts.append(mount)
    return _joined(words), msgspec.structs.replace(sandbox, mounts=mounts)


def _joined(words: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def _alone(sandbox: Sandbox) -> Iterator[str]:
    """The options with which bubblewrap executes the command itself."""
    for mount in sandbox.mounts:
        yield from _mount(mount, root=sandbox.root)
    yield from ("--chdir", "/")
    for name, value in sandbox.variables.items():
        yield from ("--setenv", name, value)


def _beside(sandbox: Sandbox) -> Iterator[str]:
    """The options that mount the container's root inside the machine's view; `inside` runs there.

    In the container's view, `inside` would load libraries from the pod's volumes while it still has
    the right to become any user.
    """
    yield from ("--ro-bind", "/", "/")
    if not any(isinstance(mount, Bind) and mount.target == ROOT for mount in sandbox.mounts):
        yield from ("--perms", "0755", "--tmpfs", NEW_ROOT)
    for mount in sandbox.mounts:
        yield from _mount(mount, root=sandbox.root, below=NEW_ROOT)


def _mount(mount: Mount, *, root: bool, below: str = "") -> Iterator[str]:
    match mount:
        case Bind(source=source, target=target, read_only=read_only):
            yield from ("--ro-bind" if read_only else "--bind", source, f"{below}{target}")
        case Tmpfs(target):
            # Sticky and writable for all, like /tmp: the process may run as any user.
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
            # Without root, a new /dev would put the process into a second user namespace, which
            # cannot be entered from outside. So it gets the host's /dev, with the host's modes.
            yield from ("--dev", f"{below}/dev") if root else ("--dev-bind", "/dev", "/dev")
            if not root:
                yield from ("--perms", "1777", "--tmpfs", "/dev/shm")  # noqa: S108
                yield from ("--tmpfs", "/dev/pts")  # whoever reads a terminal takes what is typed
        case _:
            assert_never(mount)
