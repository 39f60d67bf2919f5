"""Opens files and directories for mounts, without leaving their volume.

A container may replace a directory of its volume by a link at any time. So a path in a volume is
opened one name at a time, by descriptors. The opened file, not its path, must be mounted in the
end: `is_mounted` checks that before the container's process runs.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Literal

MAX_LINKS = 40
"""The most symbolic links in a path, as in the kernel."""

_LOOK = os.O_PATH | os.O_NOFOLLOW


class OutsideError(OSError):
    """A path leads out of its volume."""


class Opened:
    """An open file or directory; closed by `close`, or with its last reference."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @property
    def descriptor(self) -> int:
        """The descriptor, which survives a move of the file; -1 after `close`."""
        return self._descriptor

    @property
    def path(self) -> str:
        """The present path of the file."""
        return os.readlink(f"/proc/self/fd/{self._descriptor}")  # noqa: PTH115

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(os.fstat(self._descriptor).st_mode)

    @property
    def identity(self) -> tuple[int, int]:
        """The device and inode, which are unique while the file is open."""
        found = os.fstat(self._descriptor)
        return found.st_dev, found.st_ino

    @property
    def is_of_proc(self) -> bool:
        """Whether it is in a /proc, and so tells of processes."""
        major, minor = os.major(self.identity[0]), os.minor(self.identity[0])
        with open("/proc/self/mountinfo") as stream:  # noqa: PTH123
            for line in stream:
                before, _, after = line.partition(" - ")
                if before.split()[2] == f"{major}:{minor}":
                    return after.startswith("proc ")
        return False

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        with suppress(OSError):
            self.close()


def open_path(path: str | os.PathLike[str]) -> Opened:
    """Open a path, with symbolic links followed."""
    return Opened(os.open(path, os.O_PATH))


def open_beneath(root: Opened, path: str, *, make: bool) -> Opened:
    """Open a path inside a directory; raises `OutsideError` if a link leads out of it.

    With `make`, missing directories are created.
    """
    way = [Opened(os.dup(root.descriptor))]
    todo = list(reversed(PurePosixPath(path).parts))
    links = 0
    while todo:
        name = todo.pop()
        if name == ".." and len(way) > 1:
            way.pop()
            continue
        if name in ("..", "/"):
            raise OutsideError(f"{path}: leads out of the volume")
        step = _step(way[-1], name, make=make)
        if not stat.S_ISLNK(os.fstat(step.descriptor).st_mode):
            way.append(step)
            continue
        links += 1
        if links > MAX_LINKS:
            raise OutsideError(f"{path}: too many symbolic links")
        todo += reversed(PurePosixPath(os.readlink("", dir_fd=step.descriptor)).parts)
    return way[-1]


def is_mounted(opened: Opened, root: str, target: PurePosixPath) -> bool:
    """Whether the opened file is mounted at a path under another process's root."""
    try:
        here = above = open_path(root)
        for name in target.parts[1:]:
            above, here = here, Opened(os.open(name, _LOOK, dir_fd=here.descriptor))
    except OSError:
        return False
    # The same directory could be there without a mount, and the mount somewhere else.
    is_mount = here is above or _mount_of(here) != _mount_of(above)
    return is_mount and here.identity == opened.identity


_Rule = Literal["hidden", "shown", "own", "free"]
"""What a pod may do with a path: nothing, read it, write to it as its own; or none of our rules."""


class Hidden:
    """The paths that no pod may mount, and exceptions inside them."""

    def __init__(
        self,
        hidden: Iterable[PurePosixPath],
        shown: Iterable[PurePosixPath],
        own: Iterable[PurePosixPath] = (),
    ) -> None:
        """A pod can only read what is `shown`; it may write to its `own`."""
        self._hidden = list(hidden)
        self._shown = list(shown)
        self._own = list(own)

    def touches(self, opened: Opened) -> bool:
        """Whether the opened file is hidden, or inside or above a hidden path.

        Compared by identity, not by path: a directory may be mounted in several places.
        """
        return self.holds(opened) or any(
            opened.identity in _upwards(each) for each in self._opened()
        )

    def holds(self, opened: Opened) -> bool:
        """Whether the opened file is hidden, or inside a hidden path."""
        return self._nearest(opened) == "hidden"

    def only_reads(self, opened: Opened) -> bool:
        """Whether the opened file is inside a path that a pod can only read."""
        return self._nearest(opened) == "shown"

    def _nearest(self, opened: Opened) -> _Rule:
        """The rule of the nearest path that has one, upwards; `free` without one."""
        rules: dict[tuple[int, int], _Rule] = {
            **{identity: "hidden" for path in self._hidden for identity in _at(path)},
            **{identity: "shown" for path in self._shown for identity in _at(path)},
            **{identity: "own" for path in self._own for identity in _at(path)},
        }
        return next((rules[one] for one in _upwards(opened) if one in rules), "free")

    def _opened(self) -> Iterator[Opened]:
        for path in self._hidden:
            with suppress(OSError):
                yield open_path(path)


NOTHING_HIDDEN = Hidden((), ())


def _at(path: PurePosixPath) -> Iterator[tuple[int, int]]:
    with suppress(OSError):
        yield open_path(path).identity


def _upwards(opened: Opened) -> Iterator[tuple[int, int]]:
    """The identities of a file and of all directories above it."""
    yield opened.identity
    here = opened
    if not opened.is_directory:
        here = open_path(PurePosixPath(opened.path).parent)
        yield here.identity
    while True:
        above = Opened(os.open("..", os.O_PATH, dir_fd=here.descriptor))
        if above.identity == here.identity:
            return
        yield above.identity
        here = above


def _step(parent: Opened, name: str, *, make: bool) -> Opened:
    try:
        return Opened(os.open(name, _LOOK, dir_fd=parent.descriptor))
    except FileNotFoundError:
        if not make:
            raise
    # As the volume itself: who may write there may write here. At once, since what is there a
    # moment later may be something else.
    mask = os.umask(0)
    try:
        mode = stat.S_IMODE(os.fstat(parent.descriptor).st_mode) & 0o777
        os.mkdir(name, mode, dir_fd=parent.descriptor)
    except FileExistsError:
        pass
    finally:
        os.umask(mask)
    return Opened(os.open(name, _LOOK, dir_fd=parent.descriptor))


def _mount_of(opened: Opened) -> str:
    with open(f"/proc/self/fdinfo/{opened.descriptor}") as stream:  # noqa: PTH123
        return next(line for line in stream if line.startswith("mnt_id:"))
