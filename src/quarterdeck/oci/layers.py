"""Writes layers and images: the same files give the same bytes, and so the same digest.

Entries are sorted, belong to root and have one time; gzip writes no time and no name. The bytes
also depend on the zlib of the Python that runs this.
"""

import gzip
import hashlib
import io
import stat
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

import msgspec

from quarterdeck.oci.model import (
    CONFIG,
    LAYER,
    MANIFEST,
    Config,
    Descriptor,
    ImageManifest,
    descriptor_of,
    encode,
)

GZIP_LEVEL = 6


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A file, directory or symbolic link of a layer."""

    path: str
    """Below the root, without a slash at the start."""
    mode: int = 0o644
    content: bytes | Path | None = None
    """What a file holds, or the file that holds it; None of a directory or link."""
    link: str | None = None
    """The target of a symbolic link."""


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """A written layer."""

    descriptor: Descriptor
    diff_id: str
    """The digest of the archive before it is packed."""
    unpacked: int
    """Its size before it is packed."""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """An image: the descriptor of its manifest, and its blobs by digest."""

    descriptor: Descriptor
    manifest: ImageManifest
    blobs: Mapping[str, bytes | Path]


def write_layer(entries: Iterable[Entry], out: IO[bytes], time: int = 0) -> Layer:
    """Write the entries, and the directories above them, as a layer."""
    packed = _Hashing(out)
    with gzip.GzipFile("", "wb", GZIP_LEVEL, cast("Any", packed), mtime=0) as zipped:
        raw = _Hashing(cast("IO[bytes]", zipped))
        with tarfile.open(fileobj=cast("Any", raw), mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for entry in in_order(entries):
                _add(tar, entry, time)
    descriptor = Descriptor(media_type=LAYER, digest=packed.digest, size=packed.size)
    return Layer(descriptor=descriptor, diff_id=raw.digest, unpacked=raw.size)


def layer_bytes(entries: Iterable[Entry], time: int = 0) -> tuple[Layer, bytes]:
    """A small layer in memory, and its bytes."""
    out = io.BytesIO()
    return write_layer(entries, out, time), out.getvalue()


def tree_entries(root: Path, below: str = "") -> Iterator[Entry]:
    """Everything below a directory of this machine, as it would be below `below` in an image.

    Modes are kept; devices, pipes and sockets are left out.
    """
    for path in sorted(root.rglob("*")):
        name = str(PurePosixPath(below, path.relative_to(root)))
        state = path.lstat()
        mode = stat.S_IMODE(state.st_mode)
        if stat.S_ISLNK(state.st_mode):
            yield Entry(path=name, mode=0o777, link=str(path.readlink()))
        elif stat.S_ISDIR(state.st_mode):
            yield Entry(path=name, mode=mode)
        elif stat.S_ISREG(state.st_mode):
            yield Entry(path=name, mode=mode, content=path)


def image(
    config: Config,
    layers: Sequence[Layer],
    blobs: Mapping[str, bytes | Path],
    annotations: Mapping[str, str] | None = None,
) -> Image:
    """An image of these layers; their bytes are among `blobs`, by digest."""
    return image_of(
        config | {"rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]}},
        [layer.descriptor for layer in layers],
        blobs,
        annotations,
    )


def image_of(
    config: Config,
    layers: Sequence[Descriptor],
    blobs: Mapping[str, bytes | Path],
    annotations: Mapping[str, str] | None = None,
) -> Image:
    """An image whose config names the layers already."""
    config_bytes = encode(config)
    config_descriptor = descriptor_of(config_bytes, CONFIG)
    manifest = ImageManifest(
        schema_version=2,
        media_type=MANIFEST,
        config=config_descriptor,
        layers=tuple(layers),
        annotations=annotations or {},
    )
    manifest_bytes = encode(manifest)
    descriptor = descriptor_of(manifest_bytes, MANIFEST)
    own = {config_descriptor.digest: config_bytes, descriptor.digest: manifest_bytes}
    return Image(descriptor=descriptor, manifest=manifest, blobs={**blobs, **own})


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """The entries by path, each directory before its content; missing directories are added."""
    by_path = {entry.path: entry for entry in entries}
    for path in list(by_path):
        for parent in PurePosixPath(path).parents:
            if parent.name:
                by_path.setdefault(str(parent), Entry(path=str(parent), mode=0o755))
    return sorted(by_path.values(), key=lambda entry: PurePosixPath(entry.path).parts)


class _Hashing:
    """Passes bytes on, and counts and hashes them."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        self._out.write(data)
        return len(data)

    def flush(self) -> None:
        self._out.flush()

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"


def _add(tar: tarfile.TarFile, entry: Entry, time: int) -> None:
    info = tarfile.TarInfo(entry.path)
    info.mode, info.mtime = entry.mode, time
    if entry.link is not None:
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.link, 0o777
        tar.addfile(info)
    elif isinstance(entry.content, Path):
        with entry.content.open("rb") as file:
            info.size = entry.content.stat().st_size
            tar.addfile(info, file)
    elif entry.content is not None:
        info.size = len(entry.content)
        tar.addfile(info, io.BytesIO(entry.content))
    else:
        # A directory that nobody may enter would hide what is in it.
        info.type, info.mode = tarfile.DIRTYPE, entry.mode | 0o100
        tar.addfile(info)
