"""Signatures in cosign's keyed format: made, verified, and refused."""

import base64
import json
import subprocess
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.oci.errors import OciError
from quarterdeck.oci.model import CONFIG, MANIFEST, ImageManifest, decode_manifest, digest_of
from quarterdeck.oci.signature import (
    ANNOTATION,
    Signature,
    load_private_key,
    load_public_key,
    sign,
    signature_image,
    signature_in,
    signature_layers,
    signature_tag,
    signing_payload,
    verify,
    verify_any,
)

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
DIGEST = digest_of(b"image")
REFERENCE = "registry.test/releases"


def pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def public_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def test_the_payload_is_the_one_that_cosign_signs() -> None:
    assert signing_payload(REFERENCE, DIGEST).decode() == (
        '{"critical":{"identity":{"docker-reference":"registry.test/releases"},'
        f'"image":{{"docker-manifest-digest":"{DIGEST}"}},'
        '"type":"cosign container image signature"},"optional":null}'
    )


def test_a_signature_is_stored_as_cosign_stores_it() -> None:
    signature = sign(REFERENCE, DIGEST, KEY)
    made = signature_image([signature])
    manifest = decode_manifest(_bytes(made.blobs[made.descriptor.digest]))
    assert (made.descriptor.media_type, made.manifest.config.media_type) == (MANIFEST, CONFIG)
    (layer,) = made.manifest.layers
    assert layer.media_type == "application/vnd.dev.cosign.simplesigning.v1+json"
    assert dict(layer.annotations) == {ANNOTATION: signature.signature}
    assert manifest == made.manifest
    (found,) = signature_layers(made.manifest)
    assert signature_in(found, _bytes(made.blobs[found.digest])) == signature
    assert signature_tag(DIGEST) == f"sha256-{DIGEST[7:]}.sig"


def test_a_signature_is_verified() -> None:
    signed = verify(sign(REFERENCE, DIGEST, KEY), DIGEST, [OTHER.public_key(), KEY.public_key()])
    assert (signed.digest, signed.reference) == (DIGEST, REFERENCE)


COSIGN_KEY = b"""\
-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAErPqnw7DsB3y5Fvw9pFFGKeUGzOG2
E67kRmFFD30TqSz+AYluTqVN2de1QGjBMBv7scZY867alzTqqhxLaG0+wA==
-----END PUBLIC KEY-----
"""
COSIGN_IMAGE = "sha256:5755e205fa36f23418832ca875b45167cb87f57651b57205b118e9f009e32341"
COSIGN_REFERENCE = "127.0.0.1:38803/quarterdeck-release"
COSIGN_MANIFEST = (
    b'{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":'
    b'{"mediaType":"application/vnd.oci.image.config.v1+json","size":233,"digest":"sha256:'
    b'f3f8f08a2005ff5c5daeab8b45ef901f921380d62e30fec93c64fe6ab0668304"},"layers":[{"mediaType":'
    b'"application/vnd.dev.cosign.simplesigning.v1+json","size":251,"digest":"sha256:'
    b'6c87418a5c097c7c047886a87cb821f7078316d95fca21658885fc24408227cb","annotations":{'
    b'"dev.cosignproject.cosign/signature":"MEQCIETpOep8DmMkogZtpXUbPn7jAZpMcoZS6gTG0mI9fosLAiBi'
    b'HjOK99PAxmeID6sVExNreOznr91vRzx/lBXwzDkV7w=="}}]}'
)


def test_what_cosign_signed_is_verified() -> None:
    """By cosign 2.5.0, with `sign --key cosign.key --tlog-upload=false`, as a registry had it.

    The bytes that it signed are ours; `test_registry_cosign` runs the program itself.
    """
    manifest = decode_manifest(COSIGN_MANIFEST)
    assert isinstance(manifest, ImageManifest)
    (layer,) = signature_layers(manifest)
    payload = signing_payload(COSIGN_REFERENCE, COSIGN_IMAGE)
    assert (digest_of(payload), len(payload)) == (layer.digest, layer.size)
    keys = [load_public_key(COSIGN_KEY)]
    signed = verify(signature_in(layer, payload), COSIGN_IMAGE, keys)
    assert (signed.digest, signed.reference) == (COSIGN_IMAGE, COSIGN_REFERENCE)
    with pytest.raises(OciError, match="another image"):
        verify(signature_in(layer, payload), DIGEST, keys)


def test_openssl_verifies_our_signature_and_we_verify_its(tmp_path: Path) -> None:
    """The same signature scheme, by a program that is not ours."""
    signature = sign(REFERENCE, DIGEST, KEY)
    files = {"key": pem(KEY), "pub": public_pem(KEY), "payload": signature.payload}
    files["sig"] = base64.b64decode(signature.signature)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    digest = ["openssl", "dgst", "-sha256"]
    checked = subprocess.run(
        [*digest, "-verify", "pub", "-signature", "sig", "payload"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert b"Verified OK" in checked.stdout
    theirs = subprocess.run(
        [*digest, "-sign", "key", "payload"], cwd=tmp_path, capture_output=True, check=True
    ).stdout
    text = base64.b64encode(theirs).decode()
    verify(Signature(payload=signature.payload, signature=text), DIGEST, [KEY.public_key()])


def _other_type() -> Signature:
    payload = signing_payload(REFERENCE, DIGEST).replace(b"cosign container", b"some other")
    return _signed(payload)


def _signed(payload: bytes) -> Signature:
    from cryptography.hazmat.primitives import hashes

    made = KEY.sign(payload, ec.ECDSA(hashes.SHA256()))
    return Signature(payload=payload, signature=base64.b64encode(made).decode())


@pytest.mark.parametrize(
    ("signature", "told"),
    [
        pytest.param(sign(REFERENCE, DIGEST, OTHER), "another key", id="another key"),
        pytest.param(
            sign(REFERENCE, digest_of(b"other"), KEY), "of another image", id="another image"
        ),
        pytest.param(_other_type(), "of the type", id="another type"),
        pytest.param(_signed(b"{}"), "says nothing", id="no image in it"),
        pytest.param(_signed(b"[" * 5000), "says nothing", id="deep"),
        pytest.param(_signed(b"\xff"), "says nothing", id="not text"),
        pytest.param(
            Signature(payload=signing_payload(REFERENCE, DIGEST), signature="*"),
            "not base64",
            id="not base64",
        ),
        pytest.param(
            Signature(payload=signing_payload(REFERENCE, DIGEST), signature=""),
            "another key",
            id="empty",
        ),
    ],
)
def test_other_signatures_are_refused(signature: Signature, told: str) -> None:
    with pytest.raises(OciError, match=told):
        verify(signature, DIGEST, [KEY.public_key()])


def test_one_valid_signature_is_enough() -> None:
    signatures = [sign(REFERENCE, DIGEST, OTHER), sign(REFERENCE, DIGEST, KEY)]
    assert verify_any(signatures, DIGEST, [KEY.public_key()]).digest == DIGEST
    with pytest.raises(OciError, match="another key"):
        verify_any(signatures[:1], DIGEST, [KEY.public_key()])
    with pytest.raises(OciError, match=f"no signature of {DIGEST}"):
        verify_any([], DIGEST, [KEY.public_key()])


@given(st.integers(0, 300), st.integers(1, 255))
def test_a_changed_payload_is_never_verified(at: int, change: int) -> None:
    signature = sign(REFERENCE, DIGEST, KEY)
    data = bytearray(signature.payload)
    data[at % len(data)] ^= change
    changed = msgspec.structs.replace(signature, payload=bytes(data))
    with pytest.raises(OciError):
        verify(changed, DIGEST, [KEY.public_key()])


def test_large_layers_are_not_taken_for_signatures() -> None:
    layer = signature_image([sign(REFERENCE, DIGEST, KEY)]).manifest.layers[0]
    large = msgspec.structs.replace(layer, size=1 << 30)
    plain = msgspec.structs.replace(layer, annotations={})
    manifest = signature_image([]).manifest
    assert signature_layers(msgspec.structs.replace(manifest, layers=(large, plain))) == ()


def test_keys_are_read() -> None:
    assert load_private_key(pem(KEY)).private_numbers() == KEY.private_numbers()
    assert load_public_key(public_pem(KEY)).public_numbers() == KEY.public_key().public_numbers()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "no private key"),
        (pem(ec.generate_private_key(ec.SECP384R1())), "not on the curve P-256"),
        (b"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\n", "only cosign can open"),
        (public_pem(KEY), "no private key"),
    ],
)
def test_other_private_keys_are_told(data: bytes, told: str) -> None:
    with pytest.raises(OciError, match=told):
        load_private_key(data)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"key", "no public key"),
        (public_pem(ec.generate_private_key(ec.SECP384R1())), "not on the curve P-256"),
        (pem(KEY), "no public key"),
    ],
)
def test_other_public_keys_are_told(data: bytes, told: str) -> None:
    with pytest.raises(OciError, match=told):
        load_public_key(data)


def test_the_config_of_signatures_names_their_layers() -> None:
    made = signature_image([sign(REFERENCE, DIGEST, KEY)])
    config = json.loads(_bytes(made.blobs[made.manifest.config.digest]))
    assert config["rootfs"]["diff_ids"] == [made.manifest.layers[0].digest]


def _bytes(content: bytes | Path) -> bytes:
    assert isinstance(content, bytes)
    return content
