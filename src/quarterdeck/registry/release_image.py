"""Fetches a release image: its manifest, its signature, and the one layer that is the release.

The order is from cheap to dear: the manifest says what the digest stands for, the signature says
whether we want it, and only then the last layer is fetched. Of it, only `/release-manifests` is
unpacked. The image's other layers, which a node runs, are never fetched.
"""

import asyncio
import hashlib
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from quarterdeck.log import get_logger
from quarterdeck.oci.errors import OciError
from quarterdeck.oci.extract import extract_release
from quarterdeck.oci.model import ImageManifest, Index, decode_manifest, manifest_for
from quarterdeck.oci.signature import (
    Signature,
    load_public_key,
    signature_in,
    signature_layers,
    signature_tag,
    verify_any,
)
from quarterdeck.payload.files import RELEASE_METADATA
from quarterdeck.payload.model import PayloadError
from quarterdeck.payload.releases import FetchedImage
from quarterdeck.registry.client import Registry, StoredManifest
from quarterdeck.registry.errors import (
    ContentInvalid,
    ImageNotFound,
    RegistryError,
    RegistryUnreachable,
)
from quarterdeck.registry.reference import Reference
from quarterdeck.registry.release_store import ReleaseStore

log = get_logger("registry")

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
P = ParamSpec("P")
R = TypeVar("R")
SIGNATURES_LIMIT = 120.0
"""Seconds for the signatures of an image, of all places together."""
MAX_LAYER = 64 << 20
"""Bytes of the packed layer with the release."""


class NotVerified(RegistryError):  # noqa: N818 - a state
    """The image has no signature of the key."""

    reason = "ReleaseNotVerified"


class StorageFailed(RegistryError):  # noqa: N818 - a state
    """The release cannot be written."""

    reason = "StorageFailed"


class VerificationKey(msgspec.Struct, frozen=True):
    """A public key, and the identifier by which it is remembered who verified a release."""

    key: ec.EllipticCurvePublicKey
    identifier: str


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A release that lies in the store."""

    digest: str
    directory: Path
    verified_by: str
    """The identifier of the key that verified it; empty if none did."""


def verification_key(pem: bytes) -> VerificationKey:
    """The key in a PEM; OciError if it is none."""
    key = load_public_key(pem)
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return VerificationKey(key, hashlib.sha256(der).hexdigest())


async def fetch_release(
    registry: Registry,
    image: Reference,
    store: ReleaseStore,
    key: VerificationKey | None = None,
    *,
    force: bool = False,
) -> Fetched:
    """Fetch a release image into the store; RegistryError, with what to do, if it is refused.

    With a key an image without its signature is refused; with `force` it is fetched all the same.
    """
    stored = await registry.manifest(image)
    place = image.at(stored.digest)
    verified_by = await _verified_by(registry, place, key, force=force) if key else ""
    facts = FetchedImage(image=str(place), verified_by=verified_by)
    directory = store.directory(place.digest)
    try:
        if await asyncio.to_thread(store.has, place.digest):
            await asyncio.to_thread(store.record, place.digest, facts)
        else:
            directory = await _fetch(registry, place, stored, store, facts)
    except OSError as error:
        raise StorageFailed(
            f"{place}: the release cannot be written to {store.root}: {error.strerror or error}",
            "let --fetched-releases name a directory with space that the operator can write",
        ) from error
    return Fetched(digest=place.digest, directory=directory, verified_by=verified_by)


async def _fetch(
    registry: Registry,
    place: Reference,
    stored: StoredManifest,
    store: ReleaseStore,
    facts: FetchedImage,
) -> Path:
    part = await asyncio.to_thread(store.begin)
    try:
        manifest = await image_manifest(registry, place, stored)
        if not manifest.layers:
            raise _no_release(place, "it has no layers")
        layer = manifest.layers[-1]
        if layer.size > MAX_LAYER:
            raise _no_release(place, f"its last layer has {layer.size} bytes")
        packed = part / ".layer"
        await registry.blob(place, layer.digest, layer.size, packed)
        try:
            hashes = await _to_its_end(_unpack, packed, part)
        except OciError as error:
            raise ContentInvalid(f"{place}: {error}", _NOT_APPLIED) from error
        if not await asyncio.to_thread((part / RELEASE_METADATA).is_file):
            raise _no_release(place, f"/release-manifests has no {RELEASE_METADATA}")
        try:
            return await _to_its_end(store.finish, part, place.digest, facts, hashes)
        except PayloadError as error:
            raise ContentInvalid(f"{place}: {error.problems[0]}", _NOT_APPLIED) from error
    finally:
        await asyncio.to_thread(shutil.rmtree, part, ignore_errors=True)


async def _to_its_end(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call something in a thread; if cancelled, wait for its end, so that nobody writes later."""
    work = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    finally:
        await asyncio.wait([work])


async def image_manifest(
    registry: Registry, place: Reference, stored: StoredManifest
) -> ImageManifest:
    """The manifest of the image for this machine; an index has one per platform."""
    try:
        found = decode_manifest(stored.data)
        if isinstance(found, Index):
            machine = platform.machine()
            one = manifest_for(found, ARCHITECTURES.get(machine, machine))
            inner = await registry.manifest(place.at(one.digest))
            found = decode_manifest(inner.data)
    except OciError as error:
        raise ContentInvalid(f"{place}: {error}", _NOT_APPLIED) from error
    if isinstance(found, Index):
        raise _no_release(place, "an index within an index")
    return found


def _unpack(packed: Path, into: Path) -> dict[str, str]:
    """Unpack the release in a layer, and remove the layer; return the hashes of the files."""
    with packed.open("rb") as layer:
        made = extract_release(layer, into)
    packed.unlink()
    return made.hashes


async def _verified_by(
    registry: Registry, place: Reference, key: VerificationKey, *, force: bool
) -> str:
    """The identifier of the key, if it signed the image; empty if it did not, and `force` is on."""
    try:
        await _verify(registry, place, key)
    except OciError as error:
        if force:
            return ""
        raise NotVerified(f"{place}: not verified: {error}", _SIGN) from error
    except ImageNotFound as error:
        if force:
            return ""
        raise NotVerified(f"{place}: not verified: it has no signature", _SIGN) from error
    except RegistryError:
        if force:
            return ""
        raise
    return key.identifier


async def _verify(registry: Registry, image: Reference, key: VerificationKey) -> None:
    """Verify the image with the signatures of the first place whose signatures do.

    A mirror may have old ones, or be slow. What the last place, the image's own, says is the error.
    """
    failed: RegistryError | OciError | None = None
    tags = registry.places(image.tagged(signature_tag(image.digest)))
    for tag in tags:
        try:
            signatures = await _signatures(registry, image, tag, SIGNATURES_LIMIT / len(tags))
            verify_any(signatures, image.digest, [key.key])
        except (RegistryError, OciError) as error:
            log.info("not verified", signatures=str(tag), error=str(error))
            failed = error
        else:
            return
    assert failed is not None  # noqa: S101 - there is always one place
    raise failed


async def _signatures(
    registry: Registry, place: Reference, tag: Reference, limit: float
) -> list[Signature]:
    try:
        async with asyncio.timeout(limit):
            stored = await registry.manifest(tag)
            manifest = decode_manifest(stored.data)
            if isinstance(manifest, Index):
                raise OciError("an index in place of its signatures; sign it again")
            return [
                signature_in(layer, await registry.small_blob(place, layer.digest, layer.size))
                for layer in signature_layers(manifest)
            ]
    except TimeoutError as error:
        raise RegistryUnreachable(
            f"{tag}: no signatures in {limit:.0f} seconds", "check the registry and its mirrors"
        ) from error


def _no_release(place: Reference, why: str) -> ContentInvalid:
    return ContentInvalid(
        f"{place}: no release image: {why}", "name an image that `quarterdeck release build` made"
    )


_SIGN = (
    "sign it with the key of --verification-key, or name another release;"
    " spec.desiredUpdate.force takes it unverified"
)
_NOT_APPLIED = "nothing of it is applied; push the release again, or name another one"
