"""OCI archives: an image layout in one tar file, as skopeo, podman and `ctr` write and read them.

Of the tar file only `index.json` and blobs that are asked for are read, each checked by its digest.
"""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from quarterdeck.oci.blobs import Readable, check_blob, check_file
from quarterdeck.oci.errors import OciError
from quarterdeck.oci.layers import Image
from quarterdeck.oci.model import (
    INDEX,
    INDEXES,
    MAX_MANIFEST,
    Config,
    Descriptor,
    ImageManifest,
    Index,
    Platform,
    decode_config,
    decode_manifest,
    encode,
    manifest_for,
)
from quarterdeck.oci.tar_reader import FILE, TarReader

REFERENCE = "org.opencontainers.image.ref.name"
CONTAINERD_NAME = "io.containerd.image.name"
MAX_ENTRIES = 10_000
_LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """An image for an archive, with its name there."""

    image: Image
    reference: str = ""
    """A tag, or a whole reference; empty for none."""
    platform: Platform | None = None


def write_archive(path: Path, *images: Named, time: int = 0) -> None:
    """Write an archive of these images; it appears when it is complete."""
    blobs: dict[str, bytes | Path] = {}
    for named in images:
        blobs |= named.image.blobs
    index = Index(
        schema_version=2,
        media_type=INDEX,
        manifests=tuple(_described(named) for named in images),
    )
    new = path.with_name(f".{path.name}.new")
    try:
        with tarfile.open(new, "w", format=tarfile.PAX_FORMAT) as tar:
            _file(tar, "oci-layout", _LAYOUT, time)
            _file(tar, "index.json", encode(index), time)
            for digest, content in sorted(blobs.items()):
                _file(tar, _blob_path(digest), content, time)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


class Archive:
    """An archive that is open for reading."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("rb")
        try:
            self._places = _places(self._file)
            self.index = self._read_index()
        except OciError as error:
            self._file.close()
            raise OciError(f"{path}: {error}") from None
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def image(self, architecture: str = "amd64") -> tuple[Descriptor, ImageManifest]:
        """The archive's image for linux on an architecture, and its descriptor."""
        found = self.index
        for _ in range(2):
            nested = len(found.manifests) == 1 and found.manifests[0].media_type in INDEXES
            descriptor = found.manifests[0] if nested else manifest_for(found, architecture)
            decoded = decode_manifest(self.blob(descriptor))
            if isinstance(decoded, ImageManifest):
                return descriptor, decoded
            found = decoded
        raise OciError(f"{self._path}: an index of indexes; write the archive again")

    def config(self, manifest: ImageManifest) -> Config:
        """The config of an image."""
        return decode_config(self.blob(manifest.config))

    def blob(self, descriptor: Descriptor, limit: int = MAX_MANIFEST) -> bytes:
        """A small blob, checked; OciError if it is missing, larger than the limit, or another."""
        if descriptor.size > limit:
            raise OciError(f"{descriptor.digest} has {descriptor.size} bytes, more than {limit}")
        section = self._section(descriptor)
        return check_blob(section.read(descriptor.size), descriptor)

    def open_blob(self, descriptor: Descriptor) -> BinaryIO:
        """A blob of any size, checked, to be read piece by piece; OciError if it is not right."""
        check_file(self._section(descriptor), descriptor)
        return self._section(descriptor)

    def _section(self, descriptor: Descriptor) -> BinaryIO:
        place = self._places.get(_blob_path(descriptor.digest))
        if place is None:
            raise OciError(f"{self._path}: {descriptor.digest} is missing; write the archive again")
        if place[1] != descriptor.size:
            raise OciError(
                f"{self._path}: {descriptor.digest} has {place[1]} bytes instead of "
                f"{descriptor.size}; write the archive again"
            )
        return io.BufferedReader(_Section(self._file, *place))

    def _read_index(self) -> Index:
        place = self._places.get("index.json")
        if place is None or place[1] > MAX_MANIFEST:
            raise OciError("no index.json, so it is no OCI archive; write one with `skopeo copy`")
        decoded = decode_manifest(_Section(self._file, *place).read(place[1]))
        if not isinstance(decoded, Index) or not decoded.manifests:
            raise OciError("an index.json without images; write the archive again")
        return decoded


class _Section(io.RawIOBase):
    """A part of a file, as a file of its own."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._whole = file
        self._at = start
        self._end = start + size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview") -> int:  # type: ignore[override]
        self._whole.seek(self._at)
        data = self._whole.read(min(len(buffer), self._end - self._at))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Counting:
    def __init__(self, source: Readable) -> None:
        self._source = source
        self.at = 0

    def read(self, size: int, /) -> bytes:
        data = self._source.read(size)
        self.at += len(data)
        return data


def _places(file: BinaryIO) -> Mapping[str, tuple[int, int]]:
    """By name: where each file of a tar file begins, and its size."""
    source = _Counting(file)
    places: dict[str, tuple[int, int]] = {}
    for entry in TarReader(source, max_entries=MAX_ENTRIES):
        if entry.kind == FILE:
            places[entry.name.removeprefix("./")] = (source.at, entry.size)
    return places


def _described(named: Named) -> Descriptor:
    annotations = {}
    if named.reference:
        annotations[REFERENCE] = named.reference.rpartition("/")[2].rpartition(":")[2]
        annotations[CONTAINERD_NAME] = _whole_name(named.reference)
    return msgspec.structs.replace(
        named.image.descriptor, annotations=annotations, platform=named.platform
    )


def _whole_name(reference: str) -> str:
    """The name by which a node finds the image: Kubernetes adds a registry to one without."""
    registry, slash, _ = reference.partition("/")
    if slash and ("." in registry or ":" in registry or registry == "localhost"):
        return reference
    return f"docker.io/{reference if slash else f'library/{reference}'}"


def _blob_path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/', 1)}"


def _file(tar: tarfile.TarFile, name: str, content: bytes | Path, time: int) -> None:
    info = tarfile.TarInfo(name)
    info.mode, info.mtime = 0o644, time
    if isinstance(content, Path):
        info.size = content.stat().st_size
        with content.open("rb") as file:
            tar.addfile(info, file)
    else:
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
