"""Lists and reads the files of a payload directory.

A directory is a payload, or has one directory per component; deeper directories are not read. The
files may be hostile: only regular files inside the directory, with a printable name and a limited
size, are opened.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from quarterdeck.payload.model import PayloadProblem

IMAGE_REFERENCES = "image-references"
RELEASE_METADATA = "release-metadata"
MANIFEST_ENDINGS = (".yaml", ".yml", ".json")

MAX_FILE = 4 << 20
"""The most bytes of a file. An object cannot be larger than etcd's 1.5 MiB; a file may have a
few."""
MAX_TOTAL = 64 << 20
MAX_FILES = 20_000


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One file to read."""

    file: str
    """The path within the payload, for messages."""
    directory: str
    """The directory within the payload; empty at the top."""
    name: str
    path: Path
    """The path to open, without links."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The files to read, the files in directories too deep, and the problems."""

    sources: tuple[Source, ...]
    too_deep: tuple[str, ...]
    problems: tuple[PayloadProblem, ...]


def list_files(directories: Sequence[Path]) -> Listing:
    """The files of the directories; with several, the names of the files include the directory."""
    lister = _Lister()
    for directory in directories:
        try:
            root = directory.resolve(strict=True)
            top = str(directory) if len(directories) > 1 else ""
            lister.walk(root, root, top, depth=0)
        except (OSError, RuntimeError) as error:
            lister.problems.append(
                PayloadProblem(
                    file=printable(str(directory)),
                    message=f"cannot be read: {_reason(error)}",
                    remedy="name a directory with manifests",
                )
            )
    return Listing(
        sources=tuple(lister.sources),
        too_deep=tuple(sorted(lister.too_deep)),
        problems=tuple(lister.problems),
    )


def read_files(sources: Sequence[Source]) -> Iterator[tuple[Source, bytes | PayloadProblem]]:
    """The bytes of each file, one at a time; it stops when the payload is too large."""
    total = 0
    for source in sources:
        data = _read(source)
        total += len(data) if isinstance(data, bytes) else 0
        if total > MAX_TOTAL:
            yield source, _too_large(source.file, "the payload up to here", MAX_TOTAL)
            return
        yield source, data


def printable(name: str) -> str:
    """The name with characters that are not printable as escapes."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode()
        for c in name
    )


class _Lister:
    def __init__(self) -> None:
        self.sources: list[Source] = []
        self.too_deep: list[str] = []
        self.problems: list[PayloadProblem] = []

    def walk(self, root: Path, directory: Path, shown: str, depth: int) -> None:
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            # A mounted ConfigMap has its files in hidden directories, and links to them.
            if entry.name.startswith("."):
                continue
            path = f"{shown}/{entry.name}" if shown else entry.name
            if len(self.sources) >= MAX_FILES:
                self._refuse(shown or ".", f"more than {MAX_FILES} files", "remove what is unused")
                return
            try:
                self._entry(root, entry, path, shown, depth)
            except (OSError, RuntimeError) as error:
                self._refuse(path, f"cannot be read: {_reason(error)}", "repair or remove it")

    def _entry(
        self, root: Path, entry: os.DirEntry[str], path: str, shown: str, depth: int
    ) -> None:
        is_manifest = entry.name.endswith(MANIFEST_ENDINGS)
        if entry.is_dir(follow_symlinks=False):
            if depth < 2:
                self.walk(root, Path(entry.path), path, depth + 1)
            return
        if entry.is_dir():
            self._refuse(path, "a link to a directory", "put the directory itself here")
            return
        if not is_manifest and entry.name not in (IMAGE_REFERENCES, RELEASE_METADATA):
            return
        if depth > 1:
            self.too_deep.append(printable(path))
        elif not path.isprintable():
            self._refuse(path, "a file name that is not plain text", "rename the file")
        elif not (real := _real_path(entry)).is_relative_to(root):
            self._refuse(path, "a link that leads out of the payload", "put the file itself here")
        elif not entry.is_file():
            self._refuse(path, "not a regular file", "put a file here")
        else:
            self.sources.append(
                Source(file=path, directory=shown, name=entry.name, path=real),
            )

    def _refuse(self, path: str, message: str, remedy: str) -> None:
        self.problems.append(PayloadProblem(file=printable(path), message=message, remedy=remedy))


def _real_path(entry: os.DirEntry[str]) -> Path:
    # Only a link can lead elsewhere; resolving every path would be slow.
    return Path(entry.path).resolve(strict=True) if entry.is_symlink() else Path(entry.path)


def read_regular(path: Path, limit: int) -> bytes:
    """The file's first bytes; OSError for what is no regular file, where a read may never end."""
    # Without O_NONBLOCK the open of a pipe waits for somebody who writes into it.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return file.read(limit)


def _read(source: Source) -> bytes | PayloadProblem:
    try:
        data = read_regular(source.path, MAX_FILE + 1)
    except OSError as error:
        return PayloadProblem(
            file=source.file, message=f"cannot be read: {_reason(error)}", remedy="make it readable"
        )
    return data if len(data) <= MAX_FILE else _too_large(source.file, "the file", MAX_FILE)


def _too_large(file: str, what: str, limit: int) -> PayloadProblem:
    return PayloadProblem(
        file=file,
        message=f"{what} is larger than {limit >> 20} MiB",
        remedy="split it, or remove what is not a manifest",
    )


def _reason(error: OSError | RuntimeError) -> str:
    return getattr(error, "strerror", None) or str(error)
