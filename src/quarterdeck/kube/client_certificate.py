"""Client certificates that are asked for by a CertificateSigningRequest: made, read, judged. Pure.

The API server signs in the user that a certificate names, so a certificate is taken only if it is
for our own key and for the very name that we have. What is asked for has one form, byte by byte, so
that two programs that read it cannot read two different things.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Literal

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from quarterdeck.api.meta import Object, foreign
from quarterdeck.api.times import format_time

SIGNING_REQUESTS = foreign(
    "certificates.k8s.io/v1",
    "CertificateSigningRequest",
    "certificatesigningrequests",
    namespaced=False,
)
SIGNER = "kubernetes.io/kube-apiserver-client"
"""The signer of certificates that the API server signs users in by."""
USAGES = ("client auth", "digital signature")
SHORTEST = timedelta(minutes=10)
"""The API server refuses to be asked for a shorter lifetime."""

_PEM = serialization.Encoding.PEM
_PRIVATE_KEY = re.compile(
    rb"-----BEGIN (?:\w+ )*PRIVATE KEY-----[^-]*-----END (?:\w+ )*PRIVATE KEY-----\n?"
)


class ClientCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """A client certificate, as far as it matters here."""

    user: str
    groups: tuple[str, ...]
    starts: datetime
    ends: datetime
    public_key: bytes

    @property
    def lifetime(self) -> timedelta:
        """From its first moment to its last."""
        return self.ends - self.starts

    @property
    def renewal(self) -> datetime:
        """When a new one is asked for: the second half is left for a person to approve it."""
        return self.starts + self.lifetime / 2


class Requested(msgspec.Struct, frozen=True, kw_only=True):
    """What a signing request asks for."""

    user: str
    """The common name; empty if there is not exactly one."""
    only_user: bool
    """Whether it has the one form that `signing_request` gives it, and asks for nothing else."""
    public_key: bytes


class RequestState(msgspec.Struct, frozen=True, kw_only=True):
    """How a request for a certificate stands."""

    state: Literal["issued", "refused", "waiting"]
    why: str = ""
    """What is in the way, and what to do; empty if the certificate was issued."""
    certificate: bytes = b""


def new_key() -> bytes:
    """A new private key as PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        _PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def signing_request(key: bytes, user: str) -> bytes:
    """The request for a certificate of this user, who is in no group, as PEM."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_subject(user))
    return builder.sign(_private(key), hashes.SHA256()).public_bytes(_PEM)


def request_name(prefix: str, key: bytes) -> str:
    """The name of the request for this key: the same again after a restart."""
    return f"{prefix}-{hashlib.sha256(public_key(key)).hexdigest()[:16]}"


def request_object(name: str, request: bytes, lifetime: timedelta) -> Object:
    """The CertificateSigningRequest."""
    return {
        "apiVersion": SIGNING_REQUESTS.api_version,
        "kind": SIGNING_REQUESTS.kind,
        "metadata": {"name": name},
        "spec": {
            "signerName": SIGNER,
            "usages": list(USAGES),
            "expirationSeconds": int(max(lifetime, SHORTEST).total_seconds()),
            "request": base64.b64encode(request).decode(),
        },
    }


def public_key(key: bytes) -> bytes:
    """The public part of a private key; ValueError if it is none of ours."""
    return _public_bytes(_private(key).public_key())


def read_certificate(pem: bytes) -> ClientCertificate:
    """The first certificate of a PEM text; ValueError if there is none."""
    with _unreadable_is_value_error():
        found = x509.load_pem_x509_certificate(pem)
        return ClientCertificate(
            user=", ".join(_values(found.subject, NameOID.COMMON_NAME)),
            groups=tuple(_values(found.subject, NameOID.ORGANIZATION_NAME)),
            starts=found.not_valid_before_utc,
            ends=found.not_valid_after_utc,
            public_key=_public_bytes(found.public_key()),
        )


def read_pair(pem: bytes) -> ClientCertificate:
    """The certificate of a text that has its private key too; ValueError if they do not match."""
    found = read_certificate(pem)
    block = _PRIVATE_KEY.search(pem)
    if block is None:
        raise ValueError("there is no private key beside the certificate")
    with _unreadable_is_value_error():
        key = serialization.load_pem_private_key(block[0], password=None)
    if _public_bytes(key.public_key()) != found.public_key:
        raise ValueError("the certificate is not for the key beside it")
    return found


def read_request(obj: Object) -> Requested:
    """What a CertificateSigningRequest asks for; ValueError if that cannot be read."""
    pem = _decoded(obj["spec"].get("request"))
    with _unreadable_is_value_error():
        found = x509.load_pem_x509_csr(pem)
        names = list(_values(found.subject, NameOID.COMMON_NAME))
        user = names[0] if len(names) == 1 else ""
        key = found.public_key()
        only_user = (
            user != ""
            # One block and nothing around it: another reader may take another block.
            and found.public_bytes(_PEM) == pem
            and found.subject.public_bytes() == _subject(user).public_bytes()
            and not list(found.extensions)
            and not list(found.attributes)
            and isinstance(key, ec.EllipticCurvePublicKey)
            and isinstance(key.curve, ec.SECP256R1)
            and found.is_signature_valid
        )
        return Requested(user=user, only_user=only_user, public_key=_public_bytes(key))


def condition(obj: Object, kind: str) -> Object | None:
    """The condition of this type on a CertificateSigningRequest; None if it has none."""
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one.get("type") == kind), None)


def answer_to(obj: Object, key: bytes, own: ClientCertificate, now: datetime) -> RequestState:
    """How our request for a certificate that follows our own stands."""
    name = obj["metadata"]["name"]
    for kind in ("Denied", "Failed"):
        if (found := condition(obj, kind)) is not None:
            said = ": ".join(filter(None, [found.get("reason"), found.get("message")]))
            return _refused(f"certificatesigningrequest {name} is {kind.lower()} ({said})")
    if not _is_for(obj, key):
        return _refused(f"certificatesigningrequest {name} is somebody else's, for another key")
    if pem := (obj.get("status") or {}).get("certificate"):
        try:
            issued = _decoded(pem)
            asked = timedelta(seconds=obj["spec"].get("expirationSeconds") or 0)
            why = unusable(issued, key, own, now, asked)
        except ValueError as error:
            why = f"cannot be read: {error}"
        if why:
            return _refused(f"the certificate in certificatesigningrequest {name} {why}")
        return RequestState(state="issued", certificate=issued)
    if condition(obj, "Approved") is not None:
        return RequestState(
            state="waiting",
            why=f"certificatesigningrequest {name} is approved and not signed: does the "
            f"kube-controller-manager run, with the key of the signer {SIGNER}?",
        )
    return RequestState(
        state="waiting",
        why=f"certificatesigningrequest {name} waits for its approval: "
        f"kubectl certificate approve {name}",
    )


def unusable(
    pem: bytes, key: bytes, own: ClientCertificate, now: datetime, asked: timedelta
) -> str:
    """Why an issued certificate cannot follow our own; empty if it can.

    `asked` is the lifetime that was asked for. ValueError if it is no certificate.
    """
    found = read_certificate(pem)
    if found.public_key != public_key(key):
        return "is for another key"
    if (found.user, found.groups) != (own.user, own.groups):
        return f"is for {_who(found)}, not for {_who(own)}"
    if not found.starts <= now < found.ends:
        return f"is valid from {format_time(found.starts)} to {format_time(found.ends)}, not now"
    # A shorter one is fine if that was asked for: our first may be one of a year.
    if found.ends <= own.ends and found.ends < now + asked * 0.9:
        return (
            f"ends at {format_time(found.ends)}, no later than the one in use: does the signer's "
            "own certificate end then?"
        )
    return ""


def _refused(why: str) -> RequestState:
    return RequestState(state="refused", why=why)


def _who(one: ClientCertificate) -> str:
    groups = f" in {', '.join(one.groups)}" if one.groups else ""
    return f"the user {one.user!r}{groups}"


def _is_for(obj: Object, key: bytes) -> bool:
    try:
        return read_request(obj).public_key == public_key(key)
    except ValueError:
        return False


def _subject(user: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user)] if user else [])


def _values(name: x509.Name, oid: x509.ObjectIdentifier) -> Iterator[str]:
    return (str(one.value) for one in name.get_attributes_for_oid(oid))


def _decoded(text: object) -> bytes:
    if not isinstance(text, str):
        raise ValueError("it is empty")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("it is not base64") from error


@contextmanager
def _unreadable_is_value_error() -> Iterator[None]:
    """Raise ValueError for all that the library says of bytes that it does not understand."""
    try:
        yield
    except (
        TypeError,  # a key with a password
        UnsupportedAlgorithm,
        x509.DuplicateExtension,
        x509.InvalidVersion,
        x509.UnsupportedGeneralNameType,
    ) as error:
        raise ValueError(str(error)) from error


def _private(key: bytes) -> ec.EllipticCurvePrivateKey:
    with _unreadable_is_value_error():
        found = serialization.load_pem_private_key(key, password=None)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise ValueError("the private key is not of an elliptic curve")
    return found


def _public_bytes(key: object) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    encoded: bytes = key.public_bytes(serialization.Encoding.DER, form)  # type: ignore[attr-defined]
    return encoded
