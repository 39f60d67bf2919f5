"""What a release is, and how two differ, as plain data. Pure, but for reading a release's files."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from quarterdeck.images.errors import BuildError
from quarterdeck.images.release import BASE_LABEL
from quarterdeck.oci.archive import Archive
from quarterdeck.oci.extract import extract_release
from quarterdeck.oci.model import Config
from quarterdeck.payload.load import read_payload
from quarterdeck.payload.model import Manifest, Payload, PayloadError
from quarterdeck.payload.observed import SELF_MANAGED
from quarterdeck.payload.seal import Sealed, read_seal


class ReleaseOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a release was read, and what its image says; empty fields do not apply."""

    place: str
    digest: str = ""
    size: int = 0
    """Of all layers, as they are fetched."""
    base: str = ""
    """The digest of the operators' image under it."""


class ReadRelease(msgspec.Struct, frozen=True, kw_only=True):
    """A release with all that can be shown of it."""

    origin: ReleaseOrigin
    payload: Payload
    sealed: bool
    """Whether every file is as its SHA256SUMS says."""


class ManifestChange(msgspec.Struct, frozen=True, kw_only=True):
    """An object that two releases have differently."""

    object: str
    change: str
    """`added`, `removed` or `changed`."""
    fields: tuple[str, ...] = ()
    """The paths of the fields that differ."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How the second release differs from the first."""

    versions: tuple[str, str]
    images: tuple[tuple[str, str, str], ...]
    """The name of each image that differs, and what it is in both; empty where there is none."""
    manifests: tuple[ManifestChange, ...]

    @property
    def is_none(self) -> bool:
        """Whether both releases have the same images and manifests."""
        return not self.images and not self.manifests


def read_directory(directory: Path, origin: ReleaseOrigin | None = None) -> ReadRelease:
    """The release in a directory; PayloadError if it cannot be read."""
    sums = read_seal(directory)
    seal = Sealed(sums) if isinstance(sums, Mapping) else None
    reading = read_payload([directory], profile=SELF_MANAGED, seal=seal)
    if reading.problems:
        raise PayloadError(reading.problems)
    where = origin or ReleaseOrigin(place=str(directory))
    return ReadRelease(origin=where, payload=reading.payload, sealed=seal is not None)


def read_archive(archive: Path, architecture: str = "amd64") -> ReadRelease:
    """The release in an OCI archive; OciError if the archive has none."""
    with Archive(archive) as opened, unpacked() as directory:
        descriptor, manifest = opened.image(architecture)
        if not manifest.layers:
            raise BuildError(f"{archive}: an image without layers; build it with `release build`")
        with opened.open_blob(manifest.layers[-1]) as layer:
            extract_release(layer, directory)
        origin = ReleaseOrigin(
            place=str(archive),
            digest=descriptor.digest,
            size=sum(layer.size for layer in manifest.layers),
            base=base_of(opened.config(manifest)),
        )
        return read_directory(directory, origin)


def base_of(config: Config) -> str:
    """The digest of the operators' image under a release, as its labels say; empty for none."""
    settings = config.get("config")
    labels = settings.get("Labels") if isinstance(settings, dict) else None
    return str(labels.get(BASE_LABEL, "")) if isinstance(labels, dict) else ""


@contextmanager
def unpacked() -> Iterator[Path]:
    """An empty directory for the files of a release, removed afterwards."""
    with TemporaryDirectory(prefix="quarterdeck-release-") as name:
        yield Path(name)


def images_of(payload: Payload) -> dict[str, str]:
    """The images of a release by name."""
    release = payload.references.get("", {})
    found = {
        name: image for images in payload.references.values() for image, name in images.items()
    }
    return dict(sorted((found | {name: image for image, name in release.items()}).items()))


def release_view(read: ReadRelease) -> dict[str, Any]:
    """A release as plain data."""
    payload, origin = read.payload, read.origin
    components = Counter(manifest.component or "(no component)" for manifest in payload.manifests)
    image = {"digest": origin.digest, "size": origin.size, "base": origin.base}
    return {
        "place": origin.place,
        "version": payload.release.version,
        "previous": list(payload.release.previous),
        **({"image": image} if origin.digest else {}),
        "sealed": read.sealed,
        "manifests": len(payload.manifests),
        "components": dict(components),
        "images": images_of(payload),
    }


def difference(old: Payload, new: Payload) -> Difference:
    """How a release differs from an older one."""
    return Difference(
        versions=(old.release.version, new.release.version),
        images=tuple(_image_changes(images_of(old), images_of(new))),
        manifests=tuple(_manifest_changes(old, new)),
    )


def difference_view(found: Difference) -> dict[str, Any]:
    """A difference as plain data."""
    return {
        "from": found.versions[0],
        "to": found.versions[1],
        "images": [{"name": name, "from": a, "to": b} for name, a, b in found.images],
        "manifests": [
            {"object": each.object, "change": each.change, "fields": list(each.fields)}
            for each in found.manifests
        ],
    }


def changed_fields(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The path and both values of what differs; lists of one length are compared item by item."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys(), key=str):
            place = f"{path}.{key}" if path else str(key)
            yield from changed_fields(old.get(key), new.get(key), place)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from changed_fields(one, other, f"{path}[{number}]")
    elif old != new or type(old) is not type(new):
        yield path, old, new


def _image_changes(
    old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield name, old.get(name, ""), new.get(name, "")


def _manifest_changes(old: Payload, new: Payload) -> Iterator[ManifestChange]:
    # Where only the release's version differs, nothing was changed by anybody.
    versions = (old.release.version, new.release.version)
    before, after = _by_object(old), _by_object(new)
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield ManifestChange(object=name, change="added")
        elif name not in after:
            yield ManifestChange(object=name, change="removed")
        elif fields := tuple(
            path
            for path, one, other in changed_fields(before[name].object, after[name].object)
            if (one, other) != versions
        ):
            yield ManifestChange(object=name, change="changed", fields=fields)


def _by_object(payload: Payload) -> dict[str, Manifest]:
    """The manifests by their object; several of one, for different clusters, are numbered."""
    found: dict[str, Manifest] = {}
    seen: Counter[str] = Counter()
    for manifest in payload.manifests:
        name = str(manifest.identity)
        seen[name] += 1
        found[name if seen[name] == 1 else f"{name} ({seen[name]})"] = manifest
    return found
