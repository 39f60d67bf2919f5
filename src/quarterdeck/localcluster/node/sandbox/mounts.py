"""Plans the mounts of a container, in order. Pure, given the host's file system.

The container sees the host's root read-only. Some paths are masked, some are an empty tmpfs, and
the pod's volumes are mounted on top. bubblewrap cannot create a mount point under a read-only root.
If one is missing, its nearest existing parent becomes a tmpfs with the host's entries bound into
it. `volumes` decides the contents of volumes; `arguments` turns mounts into options.
"""

import posixpath
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import PurePosixPath as Path
from typing import Protocol

import msgspec

from quarterdeck.localcluster.node.volumes.opened import Opened

SCRATCH = (Path("/tmp"), Path("/run"), Path("/var/tmp"))  # noqa: S108
"""Directories that are empty in each container, and writable unless its root is read-only."""

ROOT = Path("/")
_OWN = (Path("/proc"), Path("/dev"))
"""Directories with their own mount in every container."""


class FileKind(Enum):
    """What is at a path, without following symbolic links."""

    DIRECTORY = "directory"
    FILE = "file"
    LINK = "link"
    NOTHING = "nothing"


class Host(Protocol):
    """Read access to the host's file system."""

    def kind(self, path: Path) -> FileKind:
        """What is at the path."""

    def entries(self, path: Path) -> list[str]:
        """The names in a directory; none if it may not be listed."""

    def link(self, path: Path) -> str:
        """Where a symbolic link points."""


class Bind(msgspec.Struct, frozen=True, kw_only=True):
    """Show a file or directory of the host at a path."""

    source: str
    target: Path
    read_only: bool = True
    directory: bool = True
    opened: Opened | None = None
    """The file that must be mounted, if a container could replace the source or mount point."""
    replaceable: bool = True
    """Whether a container could replace the source."""


class Tmpfs(msgspec.Struct, frozen=True):
    """Mount an empty file system at a path."""

    target: Path


class Directory(msgspec.Struct, frozen=True):
    """Create a directory that all users may enter."""

    target: Path


class Symlink(msgspec.Struct, frozen=True):
    """Create a symbolic link."""

    to: str
    target: Path


class ReadOnly(msgspec.Struct, frozen=True):
    """Remount a path read-only."""

    target: Path


class Proc(msgspec.Struct, frozen=True):
    """Mount the container's own /proc."""

    target: Path = Path("/proc")


class Dev(msgspec.Struct, frozen=True):
    """Mount a /dev."""

    target: Path = Path("/dev")


Mount = Bind | Tmpfs | Directory | Symlink | ReadOnly | Proc | Dev


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The file system that one container sees."""

    volumes: Sequence[Bind] = ()
    masked: Sequence[Path] = ()
    """Directories and files of the host that it must not see."""
    kept: Sequence[Path] = ()
    """Paths of the host that it must see even inside a scratch directory."""
    read_only_root: bool = False


class NoMountPointError(Exception):
    """A volume has a mount point that cannot be created."""


def resolve(path: Path, host: Host, opaque: Sequence[Path] = SCRATCH) -> Path:
    """The path with the host's symbolic links resolved, except inside the opaque directories."""
    todo = list(reversed(_parts(path)))
    done = ROOT
    links = 0
    while todo:
        part = todo.pop()
        if part == "..":
            done = done.parent
            continue
        step = done / part
        if host.kind(step) is not FileKind.LINK or any(_within(step, each) for each in opaque):
            done = step
            continue
        links += 1
        if links > 40:
            raise NoMountPointError(f"{path}: too many symbolic links at {step}")
        to = host.link(step)
        if to.startswith("/"):
            done = ROOT
        todo += reversed(_parts(Path(to)))
    return done


def plan_mounts(view: View, host: Host, *, open_root: bool = False) -> list[Mount]:
    """All mounts of a container, in order.

    With `open_root`, each entry of the host's root is mounted on its own.
    """
    scratch = [
        resolve(each, host, ()) for each in SCRATCH if host.kind(each) is not FileKind.NOTHING
    ]
    volumes = _looked_at(
        [
            msgspec.structs.replace(volume, target=resolve(volume.target, host, scratch))
            for volume in view.volumes
        ]
    )
    masks = _masks(view, host, scratch)
    on_top: dict[Path, Mount] = {each: Tmpfs(each) for each in scratch}
    on_top |= {
        each: Bind(source=str(each), target=each, directory=host.kind(each) is not FileKind.FILE)
        for each in view.kept
        if any(_within(each, hidden) for hidden in [*scratch, *masks])
    }
    on_top |= masks
    on_top |= {volume.target: volume for volume in volumes}
    opened = _to_open(on_top, host)
    if open_root and ROOT not in opened:
        opened = [ROOT, *opened]
    mounts: list[Mount] = list(_base(opened, set(on_top), host))
    mounts += [Proc(), Dev()]
    sealed = {*opened, *(each for each in masks if isinstance(on_top[each], Tmpfs))}
    if view.read_only_root:
        sealed |= {each for each in scratch if isinstance(on_top[each], Tmpfs)}
    for target in sorted(on_top, key=_depth):
        mount = on_top[target]
        if mount in volumes and mount.read_only and _holds_another(target, on_top):
            mount = msgspec.structs.replace(mount, read_only=False)
            sealed.add(target)
        way = _on_the_way(target, on_top, opened, host)
        mounts += [directory for directory in way if directory not in mounts]
        mounts.append(mount)
    # Last, because mount points are created in them.
    return mounts + [ReadOnly(each) for each in sorted(sealed, key=_depth, reverse=True)]


def _looked_at(volumes: list[Bind]) -> list[Bind]:
    """The volumes; what is mounted is looked at only where somebody could have replaced it."""
    targets = {volume.target for volume in volumes}
    return [
        volume
        if volume.replaceable or not targets.isdisjoint(volume.target.parents)
        else msgspec.structs.replace(volume, opened=None)
        for volume in volumes
    ]


def _on_the_way(
    target: Path, on_top: dict[Path, Mount], opened: Sequence[Path], host: Host
) -> Iterator[Directory]:
    """The parent directories of a mount point in a tmpfs.

    Bubblewrap would create them too, but only for their owner.
    """
    for parent in reversed(target.parents):
        cover = on_top.get(parent) or _cover(parent, on_top)
        in_scratch = isinstance(cover, Tmpfs) and parent not in on_top
        in_opened = cover is None and any(each in parent.parents for each in opened)
        if in_scratch or (in_opened and host.kind(parent) is not FileKind.DIRECTORY):
            yield Directory(parent)


def _holds_another(target: Path, on_top: dict[Path, Mount]) -> bool:
    """Whether another mount is inside, whose mount point may have to be created."""
    return any(target in other.parents for other in on_top)


def _masks(view: View, host: Host, scratch: Sequence[Path]) -> dict[Path, Mount]:
    """An empty directory or file over each masked path."""
    masks: dict[Path, Mount] = {}
    for wanted in view.masked:
        path = resolve(wanted, host, ())
        hidden = any(_within(path, each) for each in scratch)
        kept = any(_within(path, each) for each in view.kept)
        if hidden and not kept:
            continue
        match host.kind(path):
            case FileKind.DIRECTORY:
                masks[path] = Tmpfs(path)
            case FileKind.FILE:
                masks[path] = Bind(source="/dev/null", target=path, directory=False)
            case _:
                continue
    return masks


def _to_open(on_top: dict[Path, Mount], host: Host) -> list[Path]:
    """The host's directories that must become a tmpfs for missing mount points."""
    opened = set()
    for target, mount in on_top.items():
        cover = _cover(target, on_top)
        if cover is not None:
            if isinstance(cover, Bind) and not cover.directory:
                raise NoMountPointError(f"{target}: {cover.target} is a file; mount it elsewhere")
            continue
        wanted = (
            FileKind.FILE if isinstance(mount, Bind) and not mount.directory else FileKind.DIRECTORY
        )
        if host.kind(target) is wanted or any(_within(target, own) for own in _OWN):
            continue
        parent = target.parent
        while host.kind(parent) is not FileKind.DIRECTORY:
            parent = parent.parent
        opened.add(parent)
    return sorted(opened, key=_depth)


def _cover(target: Path, on_top: dict[Path, Mount]) -> Mount | None:
    """The deepest mount that contains the target; None for the host's own file system."""
    inside = [path for path in on_top if path != target and _within(target, path)]
    return on_top[max(inside, key=_depth)] if inside else None


def _base(opened: Sequence[Path], targets: set[Path], host: Host) -> Iterator[Mount]:
    """The host's file system, read-only, with the opened directories as tmpfs."""
    if ROOT not in opened:
        yield Bind(source="/", target=ROOT)
    for directory in opened:
        if directory != ROOT:
            yield Tmpfs(directory)
        for name in sorted(host.entries(directory)):
            path = directory / name
            kind = host.kind(path)
            if path in targets or path in _OWN:
                continue
            if kind is not FileKind.DIRECTORY and any(_within(target, path) for target in targets):
                continue
            match kind:
                case FileKind.LINK:
                    yield Symlink(host.link(path), path)
                case FileKind.DIRECTORY:
                    yield Bind(source=str(path), target=path)
                case FileKind.FILE:
                    yield Bind(source=str(path), target=path, directory=False)
                case _:
                    continue


def _within(path: Path, directory: Path) -> bool:
    return path == directory or directory in path.parents


def _depth(path: Path) -> tuple[int, Path]:
    return len(path.parts), path


def _parts(path: Path) -> list[str]:
    return [part for part in posixpath.normpath(str(path)).split("/") if part]
