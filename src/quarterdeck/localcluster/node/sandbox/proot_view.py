"""Turns the mounts of a container into proot's arguments. Pure, given the host's file system.

The mounts are those of `mounts`, with `open_root`. A tmpfs is a directory in the container's
scratch directory. Mount points are created there, so that proot creates none on the machine. proot
has no read-only binds, and hides files only by path. So there are lists of readable and writable
files, which the kernel enforces.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath as Path
from typing import assert_never

import msgspec

from quarterdeck.localcluster.node.sandbox.mounts import (
    ROOT,
    Bind,
    Dev,
    Directory,
    FileKind,
    Host,
    Mount,
    NoMountPointError,
    Proc,
    ReadOnly,
    Symlink,
    Tmpfs,
)

NULL = "/dev/null"
WRITABLE_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


class Allowed(msgspec.Struct, frozen=True):
    """A file or directory that the container may use, with all below it."""

    path: str
    identity: tuple[int, int] | None = None
    """The device and inode that it must have, if a container could replace it."""
    seen_at: str = ""
    """Where the container sees it."""


class ScratchEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file, directory or link to create in the scratch directory."""

    path: str
    kind: FileKind
    to: str = ""
    """Where a symbolic link points."""
    mode: int = 0o755


class ProotView(msgspec.Struct, frozen=True, kw_only=True):
    """The file system of a container in proot."""

    scratch: str
    made: list[ScratchEntry]
    """The entries to create, in order."""
    binds: list[tuple[str, str]]
    """Paths on the host, and their paths in the container."""
    readable: list[Allowed]
    writable: list[Allowed]

    @property
    def root(self) -> str:
        """The container's root on the host."""
        return f"{self.scratch}/root"

    @property
    def loader(self) -> str:
        """The loader of proot."""
        return f"{self.scratch}/loader"

    @property
    def temporary(self) -> str:
        """The directory of proot's own files."""
        return f"{self.scratch}/proot"


def proot_view(mounts: Sequence[Mount], scratch: str, host: Host) -> ProotView:
    """The view for these mounts, with its directories in the scratch directory."""
    plan = _Plan(scratch, host)
    for mount in mounts:
        plan.add(mount)
    hidden = {path for path, real in plan.places.items() if real == NULL or plan.is_made(real)}
    sources = [mount for mount in mounts if isinstance(mount, Bind) and mount.source != NULL]
    readable = [Allowed(scratch), Allowed("/proc"), Allowed("/dev")]
    for bind in sources:
        if bind.source == str(bind.target):
            readable += map(Allowed, _around(bind.target, hidden, host))
        else:
            readable.append(_allowed(bind))
    return ProotView(
        scratch=scratch,
        made=plan.made,
        binds=plan.binds,
        readable=readable,
        writable=[
            Allowed(f"{scratch}/proot"),
            *(Allowed(f"/dev/{name}") for name in WRITABLE_DEVICES),
            *(
                Allowed(plan.places[target])
                for target in plan.places
                if target not in plan.sealed and plan.is_made(plan.places[target])
            ),
            *(
                _allowed(bind)
                for bind in sources
                if not bind.read_only and bind.target not in plan.sealed
            ),
        ],
    )


def proot_options(view: ProotView) -> list[str]:
    """The options of proot for the view."""
    binds = (word for source, target in view.binds for word in ("-b", f"{source}:{target}!"))
    return ["-v", "-1", "-r", view.root, *binds, "-w", "/"]


class _Plan:
    """The mounts so far, and the entries to create for them."""

    def __init__(self, scratch: str, host: Host) -> None:
        self._scratch = scratch
        self._host = host
        self.places: dict[Path, str] = {ROOT: f"{scratch}/root"}
        self.made = [
            ScratchEntry(path=f"{scratch}/root", kind=FileKind.DIRECTORY),
            ScratchEntry(path=f"{scratch}/proot", kind=FileKind.DIRECTORY, mode=0o700),
        ]
        self.binds: list[tuple[str, str]] = []
        self.sealed: set[Path] = set()

    def add(self, mount: Mount) -> None:
        match mount:
            case Bind(source=source, target=target, directory=directory):
                self._bind(source, target, FileKind.DIRECTORY if directory else FileKind.FILE)
            case Tmpfs(target):
                real = f"{self._scratch}/{len(self.made)}"
                self.made.append(ScratchEntry(path=real, kind=FileKind.DIRECTORY, mode=0o1777))
                self._bind(real, target, FileKind.DIRECTORY)
            case Directory(target):
                self._make(target, FileKind.DIRECTORY)
            case Symlink(to, target):
                self._make(target, FileKind.LINK, to)
            case ReadOnly(target):
                self.sealed.add(target)
            case Proc(target):
                self._bind("/proc", target, FileKind.DIRECTORY)
            case Dev(target):
                self._bind("/dev", target, FileKind.DIRECTORY)
                # The machine's terminals are not for pods: a reader takes what is typed.
                for own in (target / "shm", target / "pts"):
                    if self._host.kind(own) is FileKind.DIRECTORY:
                        self.add(Tmpfs(own))
            case _:
                assert_never(mount)

    def is_made(self, real: str) -> bool:
        """Whether a path is in the scratch directory."""
        return real.startswith(f"{self._scratch}/")

    def _bind(self, source: str, target: Path, kind: FileKind) -> None:
        if ":" in source:
            raise NoMountPointError(f"{source}: proot can mount no path with a colon")
        if target != ROOT:
            self._make(target, kind)
            self.binds.append((source, str(target)))
        self.places[target] = source

    def _make(self, target: Path, kind: FileKind, to: str = "") -> None:
        """Add an entry in the scratch directory; outside of it nothing is created."""
        cover = next(path for path in target.parents if path in self.places)
        if self.is_made(self.places[cover]):
            real = os.path.join(self.places[cover], target.relative_to(cover))  # noqa: PTH118
            self.made.append(ScratchEntry(path=real, kind=kind, to=to))


def _around(path: Path, hidden: set[Path], host: Host) -> Iterator[str]:
    """The path, or its entries without the hidden ones."""
    if path in hidden:
        return
    if not any(path in each.parents for each in hidden):
        yield str(path)
        return
    for name in sorted(host.entries(path)):
        if host.kind(path / name) is not FileKind.LINK:
            yield from _around(path / name, hidden, host)


def _allowed(bind: Bind) -> Allowed:
    identity = bind.opened.identity if bind.opened else None
    return Allowed(bind.source, identity, str(bind.target))
