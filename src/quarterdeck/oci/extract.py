"""Unpacks `/release-manifests` from a layer: the only thing that is taken out of a release image.

The layer may be hostile. Only regular files and directories are written, below the given directory,
each once; anything else there, and any path that leads elsewhere, refuses the whole layer. Sizes
and counts are those that a payload may have.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from quarterdeck.oci.blobs import Readable
from quarterdeck.oci.errors import OciError
from quarterdeck.oci.inflate import Inflated
from quarterdeck.oci.tar_reader import DIRECTORY, FILE, TarEntry, TarReader

RELEASE_MANIFESTS = "release-manifests"
"""The directory of a release image with its payload."""
_DEEPEST = 3
"""Directories below it: a payload has one per component, and deeper ones are reported by lint."""
_LONGEST = 255
_PIECE = 64 << 10


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a layer may bring."""

    file: int = 4 << 20
    """The most bytes of one file."""
    total: int = 64 << 20
    """The most bytes of all files."""
    files: int = 20_000
    """The most files and directories."""
    layer: int = 128 << 20
    """The most bytes of the unpacked layer, with what is skipped."""


LIMITS = Limits()


class Extracted(msgspec.Struct, frozen=True, kw_only=True):
    """What was written."""

    hashes: dict[str, str]
    """The SHA-256 of each file, by its path below the directory."""
    size: int

    @property
    def files(self) -> tuple[str, ...]:
        """The paths below the directory, sorted."""
        return tuple(sorted(self.hashes))


def extract_release(layer: Readable, directory: Path, limits: Limits = LIMITS) -> Extracted:
    """Write the files of `/release-manifests` of a layer into an empty directory.

    The layer is a tar archive, packed with gzip or not; it is read to its end. OciError if it is
    refused: the directory then holds a part of it, which the caller removes.
    """
    inflated = Inflated(layer, limits.layer)
    hashes: dict[str, str] = {}
    made: set[tuple[str, ...]] = {()}
    total = 0
    reader = TarReader(inflated)
    for path, entry in _wanted(reader, limits):
        if entry.kind == DIRECTORY:
            _make_directory(directory, path)
            made.add(path)
            continue
        total += entry.size
        if total > limits.total:
            raise _refused(path, f"all files together have more than {limits.total >> 20} MiB")
        if path[:-1] not in made:
            _make_directory(directory, path[:-1])
            made.add(path[:-1])
        hashes["/".join(path)] = _write(reader, directory, path)
    # The rest has to fit the digest of the layer, which the caller checks.
    while inflated.read(_PIECE):
        pass
    if not hashes:
        raise OciError(
            f"no file in /{RELEASE_MANIFESTS} of the layer; it is no release image: build one with "
            f"`quarterdeck release build`"
        )
    return Extracted(hashes=hashes, size=total)


def _wanted(reader: TarReader, limits: Limits) -> Iterator[tuple[tuple[str, ...], TarEntry]]:
    """The entries to write, by their path below the directory; each is checked."""
    seen: set[tuple[str, ...]] = set()
    for entry in reader:
        parts = _parts(entry.name)
        if parts[:1] != (RELEASE_MANIFESTS,):
            continue
        path = parts[1:]
        if entry.kind not in (FILE, DIRECTORY):
            raise _refused(path, f"a {entry.kind}")
        if not path:
            if entry.kind == FILE:
                raise _refused(path, "a file instead of a directory")
            continue
        if fault := _name_fault(path):
            raise _refused(path, fault)
        if entry.size > limits.file:
            raise _refused(path, f"larger than {limits.file >> 20} MiB")
        if path in seen and entry.kind == FILE:
            raise _refused(path, "there twice")
        seen.add(path)
        if len(seen) > limits.files:
            raise _refused(path, f"more than {limits.files} files")
        yield path, entry


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a path; OciError if it leads out of the image."""
    parts = name.split("/")
    if name.startswith("/") or ".." in parts:
        raise OciError(
            f"the path {_shown(name)} leads out of the image; whoever built it meant harm, or used "
            f"a broken tool"
        )
    return tuple(part for part in parts if part not in ("", "."))


def _name_fault(path: tuple[str, ...]) -> str | None:
    if len(path) > _DEEPEST:
        return "too deep for a payload"
    for part in path:
        if len(part.encode("utf-8", "surrogatepass")) > _LONGEST:
            return "a name that is too long"
        if not part.isprintable():
            return "a name that is not plain text"
        if part.startswith(".wh."):
            return "a deletion of a lower layer's file"
    return None


def _make_directory(directory: Path, path: tuple[str, ...]) -> None:
    try:
        directory.joinpath(*path).mkdir(mode=0o755, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise _refused(path, "both a file and a directory") from None


def _write(reader: TarReader, directory: Path, path: tuple[str, ...]) -> str:
    """Write a file; return its SHA-256."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(directory.joinpath(*path), flags, 0o644)
    except FileExistsError:
        raise _refused(path, "there twice, or already in the directory") from None
    hashed = hashlib.sha256()
    with os.fdopen(descriptor, "wb") as file:
        while data := reader.read(_PIECE):
            hashed.update(data)
            file.write(data)
    return hashed.hexdigest()


def _refused(path: tuple[str, ...], why: str) -> OciError:
    name = "/".join((RELEASE_MANIFESTS, *path))
    return OciError(f"the layer has {_shown('/' + name)}: {why}; a release has only plain files")


def _shown(name: str) -> str:
    return repr(name if len(name) <= 120 else f"{name[:120]}...")
