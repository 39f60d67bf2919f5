"""Descriptors, manifests and indexes of images, and their digests. Pure.

Docker's media types are read too; the OCI ones are written.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from quarterdeck.oci.errors import OciError

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
MANIFESTS = (MANIFEST, DOCKER_MANIFEST)
INDEXES = (INDEX, DOCKER_LIST)

MAX_MANIFEST = 4 << 20
"""The most bytes of a manifest, index or config; registries refuse larger manifests."""
MAX_LAYERS = 500

Config: TypeAlias = dict[str, Any]
"""An image's config; a plain dictionary, so that fields that we do not know survive."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z", re.ASCII)


class Platform(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The machines that an image is for."""

    architecture: str
    os: str
    variant: str = ""


class Descriptor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What to fetch, and how to know that it is that: type, digest and size."""

    media_type: str
    digest: str
    size: int
    annotations: Mapping[str, str] = {}
    platform: Platform | None = None


class ImageManifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """One image: its config and its layers, the lowest first."""

    schema_version: int
    config: Descriptor
    layers: tuple[Descriptor, ...] = ()
    media_type: str = ""
    annotations: Mapping[str, str] = {}


class Index(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Several images, usually one per platform."""

    schema_version: int
    manifests: tuple[Descriptor, ...] = ()
    media_type: str = ""
    annotations: Mapping[str, str] = {}


def digest_of(data: bytes) -> str:
    """The digest of the bytes, as `sha256:<hex>`."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def is_digest(text: str) -> bool:
    """Whether a text is a digest that we can check: SHA-256, in lower case."""
    return _DIGEST.match(text) is not None


def descriptor_of(data: bytes, media_type: str) -> Descriptor:
    """The descriptor of these bytes."""
    return Descriptor(media_type=media_type, digest=digest_of(data), size=len(data))


def encode(value: Any) -> bytes:
    """JSON with sorted keys: the same value has the same bytes."""
    return msgspec.json.encode(value, order="sorted")


def decode_manifest(data: bytes) -> ImageManifest | Index:
    """The manifest or index; OciError for all else, also for digests that we cannot check."""
    found = _decode(data, _Either, "a manifest")
    if found.schema_version != 2:
        raise OciError(
            f"a manifest of schema version {found.schema_version}; push the image again with a "
            f"tool of today"
        )
    is_index, is_image = (bytes(one) != b"null" for one in (found.manifests, found.config))
    if is_index and is_image:
        # Tools would disagree about what the digest stands for.
        raise OciError("both a manifest and an index; push the image again")
    if is_index:
        return _checked_index(_decode(data, Index, "an index"))
    if not is_image:
        raise OciError("a manifest without config; name an image")
    return _checked_manifest(_decode(data, ImageManifest, "a manifest"))


def decode_config(data: bytes) -> Config:
    """The config of an image; OciError if it is none."""
    config: Config = _decode(data, dict[str, Any], "a config")
    rootfs = config.get("rootfs")
    if not isinstance(rootfs, dict) or not isinstance(rootfs.get("diff_ids"), list):
        raise OciError("a config without rootfs.diff_ids; name an image, not another artifact")
    return config


def manifest_for(index: Index, architecture: str, os: str = "linux") -> Descriptor:
    """The image of an index for a platform; one without platform counts for all."""
    for manifest in index.manifests:
        platform = manifest.platform
        if manifest.media_type in MANIFESTS and (
            platform is None or (platform.architecture, platform.os) == (architecture, os)
        ):
            return manifest
    platforms = [manifest.platform for manifest in index.manifests if manifest.platform]
    there = ", ".join(sorted({f"{platform.os}/{platform.architecture}" for platform in platforms}))
    raise OciError(
        f"no image for {os}/{architecture}, only for {there[:200] or 'nothing'}; push one for it"
    )


class _Either(msgspec.Struct, rename="camel"):
    # Not decoded: millions of values of another type would be built before they are refused.
    schema_version: int
    config: msgspec.Raw = msgspec.Raw(b"null")
    manifests: msgspec.Raw = msgspec.Raw(b"null")


def _checked_manifest(manifest: ImageManifest) -> ImageManifest:
    if len(manifest.layers) > MAX_LAYERS:
        raise OciError(f"{len(manifest.layers)} layers, more than {MAX_LAYERS}; squash the image")
    for descriptor in (manifest.config, *manifest.layers):
        _check(descriptor)
    return manifest


def _checked_index(index: Index) -> Index:
    if len(index.manifests) > MAX_LAYERS:
        raise OciError(f"{len(index.manifests)} images, more than {MAX_LAYERS}; push them apart")
    for descriptor in index.manifests:
        _check(descriptor)
    return index


def _check(descriptor: Descriptor) -> None:
    if not is_digest(descriptor.digest):
        raise OciError(f"the digest {descriptor.digest[:80]!r} is no SHA-256; push the image again")
    if descriptor.size < 0:
        raise OciError(f"{descriptor.digest} has the size {descriptor.size}; push the image again")


def _decode(data: bytes, kind: Any, what: str) -> Any:
    if len(data) > MAX_MANIFEST:
        raise OciError(f"{what} of {len(data)} bytes, more than {MAX_MANIFEST >> 20} MiB")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise OciError(f"not {what}: {error}; name an image") from None
