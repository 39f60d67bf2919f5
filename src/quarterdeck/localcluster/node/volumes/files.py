"""A pod's volumes on disk: creates, updates and removes their files.

Files from the API server change as in the kubelet: all files are written to a new directory, and
one rename of the symbolic link `..data` replaces them. So a reader sees either all old or all new
files.
"""

import os
import shutil
import stat
import uuid
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.pod.environment import UnresolvedError, expand
from quarterdeck.localcluster.node.sandbox.mounts import Bind
from quarterdeck.localcluster.node.volumes.contents import FROM_FILES, File, kind_of
from quarterdeck.localcluster.node.volumes.opened import (
    NOTHING_HIDDEN,
    Hidden,
    Opened,
    OutsideError,
    open_beneath,
    open_path,
)
from quarterdeck.log import get_logger

log = get_logger("node.volumes")

DATA = "..data"
_HIDDEN = "the cluster's keys, other pods or your kubeconfigs are there; name another directory"


class Owner(msgspec.Struct, frozen=True):
    """The owner of a volume's files; -1 keeps the present one, as in chown."""

    uid: int = -1
    gid: int = -1


def owner_of(pod: Object, *, root: bool) -> Owner:
    """The owner of the pod's files: its user, if all containers have one, and its fsGroup.

    Only root can change the owner.
    """
    if not root:
        return Owner()
    spec = pod["spec"]
    context = spec.get("securityContext") or {}
    users = {
        (container.get("securityContext") or {}).get("runAsUser", context.get("runAsUser"))
        for container in [*(spec.get("initContainers") or []), *spec["containers"]]
    }
    user = users.pop() if len(users) == 1 else None
    group = context.get("fsGroup")
    return Owner(-1 if user is None else user, -1 if group is None else group)


def write_files(directory: Path, files: dict[str, File], owner: Owner) -> bool:
    """Replace the directory's files by these in one step; True if anything has changed."""
    if _current(directory) == files:
        return False
    private = all(not file.mode & 0o007 for file in files.values()) and bool(files)
    _make_directory(directory, private, owner)
    fresh = directory / f"..{uuid.uuid4().hex}"
    try:
        _make_directory(fresh, private, owner)
        for name, file in files.items():
            _write(fresh, PurePosixPath(name), file, private, owner)
    except BaseException:  # it is tried again and again: nothing may pile up
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    old = _generation(directory)
    swap = directory / f"{DATA}_new"
    swap.unlink(missing_ok=True)
    swap.symlink_to(fresh.name)
    swap.rename(directory / DATA)
    _link_names(directory, {PurePosixPath(name).parts[0] for name in files})
    for stale in directory.glob("..*"):
        if stale.is_dir() and not stale.is_symlink() and stale != fresh:
            shutil.rmtree(stale)
    return old is not None or bool(files)


def make_empty_directory(directory: Path, owner: Owner) -> None:
    """Create an emptyDir, writable for every user of the pod; an existing one stays."""
    if not directory.exists():
        directory.mkdir(parents=True)
        directory.chmod(0o777)
        _chown(directory, owner)


def check_host_path(body: dict[str, Any], field: str, hidden: Hidden) -> Opened:
    """Open the file or directory of a hostPath volume, created or checked by its type."""
    path, kind = Path("/", body["path"]), body.get("type") or ""
    # Checked first, so that nothing is created in a hidden directory.
    nearest = next(each for each in (path, *path.parents) if each.exists())
    there = open_path(nearest)
    if nearest != path and (hidden.holds(there) or hidden.only_reads(there)):
        raise UnresolvedError(field, str(path), _HIDDEN)
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate" and not path.exists():
        path.touch()
    checks = {"Directory": path.is_dir, "File": path.is_file, "Socket": path.is_socket}
    found = checks[kind]() if kind in checks else path.exists()
    if not found:
        raise UnresolvedError(field, str(path), f"no {kind or 'such path'} on this machine")
    opened = open_path(path)
    if hidden.touches(opened):
        raise UnresolvedError(field, str(path), _HIDDEN)
    if opened.is_of_proc:
        raise UnresolvedError(field, str(path), "a pod sees no processes but its own")
    return opened


def remove_tree(directory: Path) -> None:
    """Remove a pod's files, also from directories that a container has made unreadable.

    Each directory is moved to the top before it is emptied: a container may have nested them deeper
    than recursion, descriptors or paths can go.
    """
    try:
        top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        while names := os.listdir(top):  # noqa: PTH208  # a descriptor
            for name in names:
                _remove(top, name)
    except OSError as error:
        log.warning("files of a pod are left", directory=str(directory), error=str(error))
    finally:
        os.close(top)
    with suppress(OSError):
        directory.rmdir()


def _remove(top: int, name: str) -> None:
    """Remove one entry; the directories in it go to the top."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=top)
        return
    _open_up(name, top)
    here = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    try:
        for inner in os.listdir(here):  # noqa: PTH208
            if stat.S_ISDIR(os.stat(inner, dir_fd=here, follow_symlinks=False).st_mode):
                _open_up(inner, here)
                os.rename(inner, f"..{uuid.uuid4().hex}", src_dir_fd=here, dst_dir_fd=top)
            else:
                os.unlink(inner, dir_fd=here)
    finally:
        os.close(here)
    os.rmdir(name, dir_fd=top)


def _open_up(name: str, parent: int) -> None:
    """Let us list, empty and move a directory that is ours; root can do so anyway."""
    with suppress(PermissionError):
        os.chmod(name, 0o700, dir_fd=parent)


def binds_of(
    container: dict[str, Any],
    pod: Object,
    volumes: Path,
    variables: dict[str, str],
    hidden: Hidden = NOTHING_HIDDEN,
) -> list[Bind]:
    """The binds of the container's volume mounts; raises for a path that is hidden from pods."""
    specs = {volume["name"]: volume for volume in pod["spec"].get("volumes") or []}
    return [
        _bind(mount, specs[mount["name"]], volumes, variables, hidden)
        for mount in container.get("volumeMounts") or []
    ]


def _bind(
    mount: dict[str, Any],
    volume: dict[str, Any],
    volumes: Path,
    variables: dict[str, str],
    hidden: Hidden,
) -> Bind:
    kind = kind_of(volume)
    field = f"volume {volume['name']}"
    own = kind != "hostPath"
    root = (
        open_path(volumes / volume["name"])
        if own
        else check_host_path(volume["hostPath"], field, hidden)
    )
    wanted = mount.get("subPath") or expand(mount.get("subPathExpr", ""), variables)
    source = root
    # Who could write the releases could have the cluster version operator apply anything.
    only_read = kind in FROM_FILES or (not own and hidden.only_reads(root))
    if wanted:
        try:
            source = open_beneath(root, wanted, make=not only_read)
        except OutsideError:
            raise UnresolvedError(field, wanted, "a subPath stays inside its volume") from None
        except (FileNotFoundError, NotADirectoryError):
            raise UnresolvedError(field, wanted, "no such path in the volume") from None
        if not own and hidden.touches(source):
            raise UnresolvedError(field, wanted, _HIDDEN)
    return Bind(
        source=source.path,
        target=PurePosixPath(mount["mountPath"]),
        read_only=bool(mount.get("readOnly")) or only_read,
        directory=source.is_directory,
        opened=source,
        # Only the agent can move the pod's own volumes.
        replaceable=not own or bool(wanted),
    )


def _current(directory: Path) -> dict[str, File] | None:
    """The present files; None if there are none yet."""
    generation = _generation(directory)
    if generation is None:
        return None
    return {
        str(path.relative_to(generation)): File(path.read_bytes(), path.stat().st_mode & 0o777)
        for path in generation.rglob("*")
        if path.is_file()
    }


def _generation(directory: Path) -> Path | None:
    link = directory / DATA
    return link.resolve() if link.exists() else None


def _make_directory(path: Path, private: bool, owner: Owner) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o750 if private else 0o755)
    _chown(path, owner)


def _write(root: Path, name: PurePosixPath, file: File, private: bool, owner: Owner) -> None:
    # The API server refuses these; nobody has checked a static pod's.
    if name.is_absolute() or not name.parts or ".." in name.parts:
        raise UnresolvedError("items.path", str(name), "a file of a volume stays inside it")
    parent = root
    for part in name.parts[:-1]:
        parent = parent / part
        _make_directory(parent, private, owner)
    # Unreadable for others from its creation; it gets its mode before its content.
    handle = os.open(parent / name.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as stream:
        os.fchown(handle, owner.uid, owner.gid)
        os.fchmod(handle, file.mode)
        stream.write(file.data)


def _link_names(directory: Path, names: set[str]) -> None:
    """Create the names for readers: links through `..data`, which do not change."""
    for name in names:
        link = directory / name
        if not link.is_symlink():
            link.symlink_to(f"{DATA}/{name}")
    for link in directory.iterdir():
        if link.is_symlink() and link.name != DATA and link.name not in names:
            link.unlink()


def _chown(path: Path, owner: Owner) -> None:
    os.chown(path, owner.uid, owner.gid)
