"""Certificates from Secrets, parsed and written again, so that nothing else gets into a file. Pure.

`cryptography` reads them; a Secret is anybody's.
"""

import base64
import binascii
import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
)
from cryptography.x509.oid import NameOID

from quarterdeck.api.meta import Object

_DEFAULT_LIFETIME = timedelta(days=3650)
_RSA_BITS = range(2048, 4096 + 1)
"""OpenSSL refuses shorter keys. Each handshake with a longer one takes the router's time."""
_RSASSA_PSS = "1.2.840.113549.1.1.10"
"""HAProxy 2.6 refuses a key that is only for this kind of signature."""
_KEY = re.compile(
    rb"-----BEGIN (?:RSA |EC )?PRIVATE KEY-----([A-Za-z0-9+/=\s]+)"
    rb"-----END (?:RSA |EC )?PRIVATE KEY-----"
)
_DIFFIE_HELLMAN = tuple(map(bytes.fromhex, ("06092a864886f70d010301", "06072a8648ce3e0201")))
"""The encoded kinds of a key that no certificate has, and whose parameters take long to check."""
_LONGEST_CHAIN = 65536
_LONGEST_KEY = 16384
"""Bytes. A chain of ten certificates and the longest RSA key that is used have half of it."""
_FEWEST_EC_BITS = 256
_BROKEN_HASHES = ("md5", "sha1")


class UnusableSecretError(Exception):
    """A Secret is no certificate with its key; the message says why and never shows its content."""


def pem_of(secret: Object) -> str:
    """The chain and the key of a Secret of type kubernetes.io/tls, as HAProxy reads them."""
    found = _pem(
        _decoded(secret, "tls.crt", _LONGEST_CHAIN), _decoded(secret, "tls.key", _LONGEST_KEY)
    )
    if isinstance(found, _Unusable):
        raise UnusableSecretError(found.why)
    return found


class _Unusable(NamedTuple):
    why: str


@lru_cache(maxsize=8192)  # parsing takes longer than all the rest of an Ingress
def _pem(chain: bytes, key_text: bytes) -> str | _Unusable:
    """The PEM, or why there is none: a result, so that the cache has it too."""
    no_pem = _Unusable(
        "tls.crt and tls.key are not a PEM certificate chain and an unencrypted PEM key"
    )
    try:
        certificates = x509.load_pem_x509_certificates(chain)
        # Before the key is read: to read a long one takes long.
        if weak := next((one for one in map(_weakness, certificates) if one), ""):
            return _Unusable(f"a certificate in tls.crt has {weak}")
        # The check of a private key's primes takes seconds; that it fits its certificate is
        # checked here, and a bad one only fails the handshakes of its own hosts.
        key = load_der_private_key(_der_of_key(key_text), None, unsafe_skip_rsa_key_validation=True)
        public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        first = certificates[0].public_key()
        if public != first.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo):
            return _Unusable("tls.key is not the key of the first certificate in tls.crt")
        written = [one.public_bytes(Encoding.PEM) for one in certificates]
        written.append(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    except Exception:  # whatever the parser finds wrong is of this Secret only
        return no_pem
    return b"".join(written).decode()


def _der_of_key(text: bytes) -> bytes:
    """The content of the private key in a PEM text; raises `ValueError` for one of another kind."""
    if (found := _KEY.search(text)) is None:
        raise ValueError
    der = base64.b64decode(b"".join(found[1].split()), validate=True)
    if any(kind in der for kind in _DIFFIE_HELLMAN):
        raise ValueError
    return der


def _weakness(certificate: x509.Certificate) -> str:
    """Why HAProxy would refuse the certificate, and with it every other one; empty if it takes it.

    OpenSSL looks at every certificate of a chain.
    """
    if certificate.public_key_algorithm_oid.dotted_string == _RSASSA_PSS:
        return "a key that is only for RSASSA-PSS; use a key for rsaEncryption"
    key = certificate.public_key()
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size not in _RSA_BITS:
            return f"an RSA key of {key.key_size} bits; use 2048 to 4096"
    elif isinstance(key, ec.EllipticCurvePublicKey):
        if key.key_size < _FEWEST_EC_BITS:
            return f"the curve {key.curve.name}; use one of {_FEWEST_EC_BITS} bits or more"
    elif not isinstance(key, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
        return "a key of another kind than RSA, elliptic curve or Edwards curve"
    signed_with = certificate.signature_hash_algorithm
    if signed_with is not None and signed_with.name in _BROKEN_HASHES:
        return f"a signature with {signed_with.name}; use SHA-256"
    return ""


def self_signed(common_name: str, now: datetime) -> str:
    """A new self-signed certificate with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:64])])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + _DEFAULT_LIFETIME)
        .sign(key, hashes.SHA256())
    )
    written = certificate.public_bytes(Encoding.PEM)
    written += key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return written.decode()


def _decoded(secret: Object, name: str, longest: int) -> bytes:
    value = (secret.get("data") or {}).get(name)
    if not value:
        raise UnusableSecretError(f"{name} is missing")
    if len(value) * 3 // 4 > longest:
        raise UnusableSecretError(f"{name} is longer than {longest} bytes")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise UnusableSecretError(f"{name} is not base64") from None
