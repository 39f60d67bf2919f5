"""Release images for tests: what `release build` makes, and what nobody should."""

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.oci_bytes import entry, tar

from quarterdeck.oci.layers import Entry, Image, image, image_of, layer_bytes
from quarterdeck.oci.model import LAYER, Config, digest_of
from quarterdeck.oci.model import descriptor_of as described
from quarterdeck.oci.signature import sign, signature_image

CONFIG = {"architecture": "amd64", "os": "linux", "config": {}}


def release_image(
    version: str,
    files: Mapping[str, Any] | None = None,
    previous: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
) -> Image:
    """A release image: a lower layer that must not be fetched, and the release."""
    base, base_bytes = layer_bytes([Entry(path="usr/bin/quarterdeck", content=b"program")])
    content: dict[str, Any] = {"release-metadata": {"version": version, "previous": list(previous)}}
    content |= files or {}
    entries = [
        Entry(
            path=f"release-manifests/{name}",
            content=value.encode() if isinstance(value, str) else json.dumps(value).encode(),
        )
        for name, value in content.items()
    ]
    layer, data = layer_bytes(entries)
    blobs = {base.descriptor.digest: base_bytes, layer.descriptor.digest: data}
    config: Config = CONFIG | {"config": {"Labels": labels}} if labels else CONFIG
    return image(config, [base, layer], blobs)


def image_of_layer(data: bytes) -> Image:
    """An image whose only layer has these bytes."""
    layer = described(data, LAYER)
    config = CONFIG | {"rootfs": {"type": "layers", "diff_ids": [digest_of(data)]}}
    return image_of(config, [layer], {layer.digest: data})


def hostile_image(*entries: tuple[Any, bytes], version: str = "9.9.9") -> Image:
    """An image whose layer has a release, and these entries too."""
    metadata = json.dumps({"version": version}).encode()
    good = entry("release-manifests/release-metadata", metadata)
    return image_of_layer(gzip.compress(tar(good, *entries)))


def zeros_image(size: int) -> Image:
    """An image with a file of so many zeros in its release."""
    head = tar(entry("release-manifests/0000_10_zeros.yaml", b""), end=False)
    header = bytearray(head[:512])
    header[124:136] = b"%011o\x00" % size
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\x00 " % sum(header)
    packer_input = bytes(header)
    # A gzip file may have several members: one for the head, and the same one for each megabyte.
    member = gzip.compress(bytes(1 << 20))
    return image_of_layer(gzip.compress(packer_input) + member * (size >> 20))


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def signatures_of(reference: str, digest: str, key: ec.EllipticCurvePrivateKey) -> Image:
    """The image to store at the signature tag."""
    return signature_image([sign(reference, digest, key)])
