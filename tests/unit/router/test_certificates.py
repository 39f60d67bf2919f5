"""What a Secret may say, and how much of the router's time it gets."""

import base64
import subprocess
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from quarterdeck.api.meta import Object
from quarterdeck.router.certificates import UnusableSecretError, _pem, pem_of

AUTHORITY = ec.generate_private_key(ec.SECP256R1())
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def certificate(key: CertificatePublicKeyTypes) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a.example")])
    builder = x509.CertificateBuilder(name, name, key, x509.random_serial_number())
    dated = builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
    return dated.sign(AUTHORITY, hashes.SHA256()).public_bytes(Encoding.PEM)


def secret(chain: bytes, key: bytes) -> Object:
    data = {"tls.crt": chain, "tls.key": key}
    return {"data": {name: base64.b64encode(text).decode() for name, text in data.items()}}


def long_rsa_key(bits: int) -> tuple[rsa.RSAPublicKey, bytes]:
    """A key of a length that would take minutes to make: its numbers are no primes."""
    p, q = (1 << bits // 2) - 1, (1 << bits // 2) - 3
    public = rsa.RSAPublicNumbers(65537, p * q)
    d = pow(65537, -1, (p - 1) * (q - 1) // 2)
    private = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public)
    key = private.private_key(unsafe_skip_rsa_key_validation=True)
    written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return public.public_key(), written


def test_a_long_rsa_key_is_refused_by_its_certificate_before_the_key_is_read() -> None:
    public, _ = long_rsa_key(16384)
    with pytest.raises(UnusableSecretError, match="RSA key of 16384 bits; use 2048 to 4096"):
        pem_of(secret(certificate(public), b"whatever"))


def test_the_primes_of_a_key_are_not_checked() -> None:
    """The check would stop the router's loop for as long as the key's owner likes."""
    key = rsa.generate_private_key(65537, 2048)
    numbers = key.private_numbers()
    swapped = rsa.RSAPrivateNumbers(
        p=numbers.p,
        q=numbers.q,
        d=numbers.d,
        dmp1=numbers.dmp1,
        dmq1=numbers.dmq1,
        iqmp=numbers.iqmp + 2,
        public_numbers=numbers.public_numbers,
    ).private_key(unsafe_skip_rsa_key_validation=True)
    written = swapped.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert "PRIVATE KEY" in pem_of(secret(certificate(key.public_key()), written))


def test_a_long_key_behind_a_good_certificate_takes_little_time() -> None:
    _, key = long_rsa_key(16384)
    began = time.process_time()
    with pytest.raises(UnusableSecretError):
        pem_of(secret(certificate(AUTHORITY.public_key()), key))
    assert time.process_time() - began < 1.0


def encoded(tag: int, content: bytes) -> bytes:
    return bytes([tag, 0x82]) + len(content).to_bytes(2) + content


def number(value: int) -> bytes:
    return encoded(2, value.to_bytes(value.bit_length() // 8 + 1))


@pytest.mark.parametrize("bits", [10000, 30000], ids=["slow to check", "an error of OpenSSL"])
@pytest.mark.parametrize("kind", ["2a864886f70d010301", "2a8648ce3e0201"])
def test_a_diffie_hellman_key_is_not_parsed(bits: int, kind: str) -> None:
    oid = bytes.fromhex(kind)
    parameters = encoded(0x30, number((1 << bits) - 1) + number(2))
    algorithm = encoded(0x30, bytes([6, len(oid)]) + oid + parameters)
    der = encoded(0x30, number(0) + algorithm + encoded(4, number(3)))
    body = base64.encodebytes(der)
    key = b"-----BEGIN PRIVATE KEY-----\n" + body + b"-----END PRIVATE KEY-----\n"
    began = time.process_time()
    with pytest.raises(UnusableSecretError):
        pem_of(secret(certificate(AUTHORITY.public_key()), key))
    assert time.process_time() - began < 0.3


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("key", [AUTHORITY, rsa.generate_private_key(65537, 2048)])
def test_usual_forms_of_a_key_are_read(
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, end: bytes, form: PrivateFormat
) -> None:
    text = key.private_bytes(Encoding.PEM, form, NoEncryption()).replace(b"\n", end)
    before = b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    assert "BEGIN PRIVATE KEY" in pem_of(secret(certificate(key.public_key()), before + text))


def test_a_refusal_is_cached_too() -> None:
    bad = secret(certificate(AUTHORITY.public_key()), b"no key, and not the same in any other test")
    before = _pem.cache_info()
    for _ in range(3):
        with pytest.raises(UnusableSecretError, match="not a PEM certificate chain"):
            pem_of(bad)
    after = _pem.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (1, 2)


@pytest.mark.parametrize(("name", "size"), [("tls.crt", 70_000), ("tls.key", 17_000)])
def test_a_text_that_is_too_long_is_not_parsed(name: str, size: int) -> None:
    given = secret(certificate(AUTHORITY.public_key()), b"k")
    given["data"][name] = base64.b64encode(b"x" * size).decode()
    before = _pem.cache_info()
    with pytest.raises(UnusableSecretError, match=f"{name} is longer than"):
        pem_of(given)
    assert _pem.cache_info() == before


def test_a_key_only_for_rsassa_pss_is_refused(tmp_path: Path) -> None:
    """HAProxy would refuse it, and with it the whole configuration."""
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa-pss", "-nodes", "-subj", "/CN=a.example"),
            *("-pkeyopt", "rsa_keygen_bits:2048", "-keyout", "key.pem", "-out", "crt.pem"),
        ],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    given = secret((tmp_path / "crt.pem").read_bytes(), (tmp_path / "key.pem").read_bytes())
    with pytest.raises(UnusableSecretError, match="RSASSA-PSS"):
        pem_of(given)
