"""Signatures of images in cosign's keyed format. Pure.

What is signed is a small JSON text, the simple signing payload: it names an image by its digest and
by the reference under which it was signed. The signature, ECDSA on P-256 with SHA-256, is an
annotation of the layer that holds this text; the image with these layers has the tag
`sha256-<hex>.sig` in the repository of the signed image.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from quarterdeck.oci.errors import OciError
from quarterdeck.oci.layers import Image, image_of
from quarterdeck.oci.model import Descriptor, ImageManifest, descriptor_of, digest_of, is_digest

ANNOTATION = "dev.cosignproject.cosign/signature"
SIMPLE_SIGNING = "application/vnd.dev.cosign.simplesigning.v1+json"
TYPE = "cosign container image signature"
MAX_PAYLOAD = 64 << 10
MAX_SIGNATURES = 50
"""An image may have been signed by several; more are not looked at."""


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """A signed text and its signature."""

    payload: bytes
    signature: str
    """In base64, as in the annotation."""


class Signed(msgspec.Struct, frozen=True, kw_only=True):
    """What a valid signature says."""

    digest: str
    reference: str


def signature_tag(digest: str) -> str:
    """The tag of the image with the signatures of the image of this digest."""
    return f"{digest.replace(':', '-', 1)}.sig"


def signing_payload(reference: str, digest: str) -> bytes:
    """The text to sign, as cosign writes it."""
    critical = {
        "identity": {"docker-reference": reference},
        "image": {"docker-manifest-digest": digest},
        "type": TYPE,
    }
    return msgspec.json.encode({"critical": critical, "optional": None})


def load_private_key(pem: bytes, password: bytes | None = None) -> ec.EllipticCurvePrivateKey:
    """A private key on P-256 from PEM; OciError if it is something else."""
    if b"ENCRYPTED SIGSTORE PRIVATE KEY" in pem or b"ENCRYPTED COSIGN PRIVATE KEY" in pem:
        raise OciError(
            "a key that only cosign can open; sign with cosign, or make a key with "
            "`openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`"
        )
    try:
        key = serialization.load_pem_private_key(pem, password)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise OciError(f"no private key in PEM: {error}; name the file of the key") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not _is_p256(key.curve):
        raise OciError(
            "a key that is not on the curve P-256; make one with: openssl genpkey -algorithm EC "
            "-pkeyopt ec_paramgen_curve:P-256 -out release.key"
        )
    return key


def load_public_key(pem: bytes) -> ec.EllipticCurvePublicKey:
    """A public key on P-256 from PEM, such as cosign.pub; OciError if it is something else."""
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise OciError(f"no public key in PEM: {error}; name the file of the public key") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not _is_p256(key.curve):
        raise OciError("a public key that is not on the curve P-256; name the signer's")
    return key


def sign(reference: str, digest: str, key: ec.EllipticCurvePrivateKey) -> Signature:
    """A signature of the image of this digest, which is at this reference."""
    payload = signing_payload(reference, digest)
    made = key.sign(payload, ec.ECDSA(hashes.SHA256()))
    return Signature(payload=payload, signature=base64.b64encode(made).decode())


def verify(signature: Signature, digest: str, keys: Iterable[ec.EllipticCurvePublicKey]) -> Signed:
    """What the signature says; OciError unless one of the keys made it, and for this digest."""
    try:
        raw = base64.b64decode(signature.signature, validate=True)
    except (binascii.Error, ValueError):
        raise OciError("a signature that is not base64; sign the image again") from None
    if not any(_made_by(key, raw, signature.payload) for key in keys):
        raise OciError("a signature of another key, or of another text; sign it with the right key")
    signed = _said(signature.payload)
    if signed.digest != digest:
        raise OciError(f"a signature of another image, {signed.digest}; sign {digest}")
    return signed


def verify_any(
    signatures: Sequence[Signature], digest: str, keys: Sequence[ec.EllipticCurvePublicKey]
) -> Signed:
    """What the first valid signature says; OciError, with the reason of each, if there is none."""
    faults: list[str] = []
    for signature in signatures[:MAX_SIGNATURES]:
        try:
            return verify(signature, digest, keys)
        except OciError as error:
            faults.append(str(error))
    raise OciError("; ".join(dict.fromkeys(faults)) or f"no signature of {digest}; sign it")


def signature_image(signatures: Sequence[Signature]) -> Image:
    """The image to store at the signature tag, with these signatures."""
    layers = [_layer(signature) for signature in signatures]
    config: dict[str, Any] = {
        "architecture": "",
        "os": "",
        "config": {},
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
    }
    blobs = {digest_of(signature.payload): signature.payload for signature in signatures}
    return image_of(config, layers, blobs)


def signature_layers(manifest: ImageManifest) -> tuple[Descriptor, ...]:
    """The layers of a signature image that hold a signed text, for `signature_in`."""
    return tuple(
        layer
        for layer in manifest.layers
        if layer.media_type == SIMPLE_SIGNING
        and ANNOTATION in layer.annotations
        and layer.size <= MAX_PAYLOAD
    )[:MAX_SIGNATURES]


def signature_in(layer: Descriptor, payload: bytes) -> Signature:
    """The signature of a layer; its bytes have been checked with the descriptor."""
    return Signature(payload=payload, signature=layer.annotations[ANNOTATION])


class _Identity(msgspec.Struct):
    reference: str = msgspec.field(name="docker-reference", default="")


class _SignedImage(msgspec.Struct):
    digest: str = msgspec.field(name="docker-manifest-digest")


class _Critical(msgspec.Struct):
    image: _SignedImage
    type: str
    identity: _Identity = msgspec.field(default_factory=_Identity)


class _Payload(msgspec.Struct):
    critical: _Critical


def _said(payload: bytes) -> Signed:
    try:
        said = msgspec.json.decode(payload, type=_Payload).critical
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise OciError(f"a signed text that says nothing of an image: {error}") from None
    if said.type != TYPE or not is_digest(said.image.digest):
        raise OciError(f"a signed text of the type {said.type[:80]!r}; sign the image again")
    return Signed(digest=said.image.digest, reference=said.identity.reference)


def _layer(signature: Signature) -> Descriptor:
    layer = descriptor_of(signature.payload, SIMPLE_SIGNING)
    return msgspec.structs.replace(layer, annotations={ANNOTATION: signature.signature})


def _made_by(key: ec.EllipticCurvePublicKey, signature: bytes, payload: bytes) -> bool:
    try:
        key.verify(signature, payload, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return False
    return True


def _is_p256(curve: ec.EllipticCurve) -> bool:
    return isinstance(curve, ec.SECP256R1)
