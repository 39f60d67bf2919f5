"""Builds a release: a payload with its images resolved, and the image that carries it.

A release image is the operators' image with one more layer, `/release-manifests`. It comes last, so
that whoever wants the manifests fetches that layer only.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

from quarterdeck.images.contents import OPERATOR_LABEL
from quarterdeck.images.errors import BuildError
from quarterdeck.oci.archive import Archive
from quarterdeck.oci.extract import RELEASE_MANIFESTS
from quarterdeck.oci.layers import Image, Layer, image_of, layer_bytes, tree_entries
from quarterdeck.oci.model import Config, Descriptor, is_digest
from quarterdeck.payload.files import (
    IMAGE_REFERENCES,
    RELEASE_METADATA,
    Source,
    list_files,
    read_files,
)
from quarterdeck.payload.image_places import is_plain_word, replace_plain_images
from quarterdeck.payload.images import is_image
from quarterdeck.payload.load import load_payload, read_payload
from quarterdeck.payload.model import (
    KnownRelease,
    Payload,
    PayloadError,
    PayloadProblem,
    ReleaseMetadata,
)
from quarterdeck.payload.observed import SELF_MANAGED
from quarterdeck.payload.releases import metadata_text
from quarterdeck.payload.seal import seal
from quarterdeck.payload.substitute import image_pattern, replace_images
from quarterdeck.strict_yaml import Refusal, decode_json, decode_yaml

RELEASE_LABEL = "io.openshift.release"
BASE_LABEL = "io.openshift.release.base-image-digest"
_TITLE, _VERSION, _DESCRIPTION = (
    f"org.opencontainers.image.{name}" for name in ("title", "version", "description")
)

References = Mapping[str, Mapping[str, str]]
"""By directory of a payload: from the image in its manifests to the image's name."""


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """The image under a release, with its blobs copied out of an archive."""

    descriptor: Descriptor
    config: Config
    layers: tuple[Descriptor, ...]
    blobs: Mapping[str, Path]


def resolved_images(
    references: References, given: Mapping[str, str], *, keep_others: bool = False
) -> dict[str, str]:
    """By name: the image to pull, with its digest. BuildError for names that nobody resolves.

    Images that have a digest in the payload already are taken from there.
    """
    listed = {name: image for images in references.values() for image, name in images.items()}
    if unknown := sorted(given.keys() - listed.keys()):
        raise BuildError(
            f"--image {unknown[0]}: no image-references of the payload has it; there are: "
            f"{', '.join(sorted(listed)) or 'none'}"
        )
    for name, image in given.items():
        if not is_image(image) or not has_digest(image):
            raise BuildError(
                f"--image {name}={image}: not an image with a digest; write {name}=REF@sha256:..."
            )
    resolved = {name: image for name, image in listed.items() if has_digest(image)} | dict(given)
    missing = sorted(listed.keys() - resolved.keys())
    if missing and not keep_others:
        raise BuildError(
            f"no digest for: {', '.join(missing)}; add --image NAME=REF@sha256:... for each, or "
            f"--keep-others to leave these names as they are"
        )
    return resolved


def has_digest(image: str) -> bool:
    """Whether an image reference has a digest that we can check."""
    return is_digest(image.partition("@")[2])


def write_release_directory(
    source: Path,
    directory: Path,
    metadata: ReleaseMetadata,
    given: Mapping[str, str],
    *,
    keep_others: bool = False,
) -> Payload:
    """Write the release of a payload into an empty directory, sealed, and return what is in it.

    PayloadError, with all problems, if the payload cannot be read.
    """
    reading = read_payload([source])
    if reading.problems:
        raise PayloadError(reading.problems)
    references = reading.payload.references
    resolved = resolved_images(references, given, keep_others=keep_others)
    for each, data in read_files(list_files([source]).sources):
        if isinstance(data, PayloadProblem):
            raise PayloadError((data,))
        if each.name in (IMAGE_REFERENCES, RELEASE_METADATA):
            continue
        path = directory / each.file
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(_with_images(data, each, references, resolved))
    (directory / IMAGE_REFERENCES).write_text(references_text(references, resolved))
    (directory / RELEASE_METADATA).write_text(metadata_text(metadata))
    seal(directory)
    known = KnownRelease(version=metadata.version)
    return load_payload(directory, release=known, profile=SELF_MANAGED, sealed=True)


def references_text(references: References, resolved: Mapping[str, str]) -> str:
    """The release's `image-references`: every image of the payload by name, as it is pulled."""
    listed = {name: image for images in references.values() for image, name in images.items()}
    tags = [
        {"name": name, "from": {"kind": "DockerImage", "name": resolved.get(name, image)}}
        for name, image in sorted(listed.items())
    ]
    stream = {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "spec": {"lookupPolicy": {"local": False}, "tags": tags},
    }
    return msgspec.json.format(msgspec.json.encode(stream), indent=2).decode() + "\n"


def read_base(archive: Path, architecture: str, scratch: Path) -> Base:
    """The image of an archive, to put a release on; its blobs go to the scratch directory."""
    blobs: dict[str, Path] = {}
    with Archive(archive) as opened:
        descriptor, manifest = opened.image(architecture)
        config = opened.config(manifest)
        for number, layer in enumerate(manifest.layers):
            blobs[layer.digest] = scratch / f"base-{number}"
            with opened.open_blob(layer) as content, blobs[layer.digest].open("wb") as file:
                shutil.copyfileobj(content, file)
    return Base(descriptor=descriptor, config=config, layers=manifest.layers, blobs=blobs)


def release_image(
    directory: Path, version: str, base: Base | None, architecture: str, time: int = 0
) -> Image:
    """The image of a release directory: the base's layers, and one with the manifests."""
    layer, data = layer_bytes(tree_entries(directory, RELEASE_MANIFESTS), time)
    under = base.config if base else {"architecture": architecture, "os": "linux"}
    config = release_config(under, layer, version, base.descriptor.digest if base else "")
    blobs: dict[str, bytes | Path] = {**(base.blobs if base else {}), layer.descriptor.digest: data}
    return image_of(config, (*(base.layers if base else ()), layer.descriptor), blobs)


def release_config(base: Config, layer: Layer, version: str, base_digest: str) -> Config:
    """The config of a release image: the base's, with the layer and the release's labels."""
    settings = dict(base.get("config") or {})
    labels = {
        **(settings.get("Labels") or {}),
        _TITLE: "quarterdeck-release",
        _DESCRIPTION: f"Quarterdeck's release {version}",
        _VERSION: version,
        RELEASE_LABEL: version,
        **({BASE_LABEL: base_digest} if base_digest else {}),
    }
    # A release has the manifests of all components; none takes it for a component.
    labels.pop(OPERATOR_LABEL, None)
    diff_ids = (base.get("rootfs") or {}).get("diff_ids") or []
    made = base | {
        "config": settings | {"Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [*diff_ids, layer.diff_id]},
    }
    if made.get("history"):
        made["history"] = [*made["history"], {"created_by": "quarterdeck release build"}]
    return made


def _with_images(
    data: bytes, source: Source, references: References, resolved: Mapping[str, str]
) -> bytes:
    listed = references.get(source.directory)
    if listed is None:
        listed = references.get(source.directory.rpartition("/")[0], {})
    images = {
        image: resolved[name]
        for image, name in listed.items()
        if resolved.get(name, image) != image
    }
    # Reading the payload has shown that it is UTF-8.
    text = replace_images(data.decode("utf-8-sig"), image_pattern(images), images)
    if any(is_plain_word(image) and image in text for image in images):
        text = _with_plain_images(text, source, images)
    return text.encode()


def _with_plain_images(text: str, source: Source, images: Mapping[str, str]) -> str:
    """The text written again, if one of its documents names an image that is a plain word."""
    decode = decode_json if source.name.endswith(".json") else decode_yaml
    objects = []
    for document in decode(text):
        if isinstance(document, Refusal):
            # Only a template may be no YAML; it names the release's own image.
            return text
        if isinstance(document.value, dict):
            objects.append(document.value)
    replaced = [replace_plain_images(obj, images) for obj in objects]
    if replaced == objects:
        return text
    if source.name.endswith(".json"):
        return "\n".join(json.dumps(obj, indent=2) for obj in replaced) + "\n"
    return yaml.safe_dump_all(replaced, sort_keys=False, allow_unicode=True, width=100)
