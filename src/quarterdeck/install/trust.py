"""Checks the files for registries before they are stored in a cluster. Pure.

What is no secret becomes a ConfigMap, which many may read: a private key must not get there.
"""

from quarterdeck.oci.errors import OciError
from quarterdeck.oci.signature import load_public_key
from quarterdeck.registry.credentials import PullSecretError, parse_pull_secret

PRIVATE = b"PRIVATE KEY"


class TrustError(Exception):
    """A file is not what its option asks for; the message says what to do."""


def check_trust(option: str, content: bytes) -> None:
    """TrustError if the content does not fit the option."""
    try:
        _CHECKS[option](content)
    except (TrustError, PullSecretError, OciError) as error:
        raise TrustError(f"{option}: {error}") from error


def _pull_secret(content: bytes) -> None:
    parse_pull_secret(content)


def _certificates(content: bytes) -> None:
    from cryptography import x509

    _no_private_key(content)
    try:
        x509.load_pem_x509_certificates(content)
    except ValueError:
        # Not the error's text, which may quote the file.
        raise TrustError("no certificates in PEM; name the file of the registry's CA") from None


def _public_key(content: bytes) -> None:
    _no_private_key(content)
    load_public_key(content)


def _no_private_key(content: bytes) -> None:
    if PRIVATE in content:
        raise TrustError("a private key, which must not leave its owner; name another file")


_CHECKS = {
    "--pull-secret": _pull_secret,
    "--registry-ca": _certificates,
    "--verification-key": _public_key,
}
