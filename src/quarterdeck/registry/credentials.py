"""Credentials from a pull secret (`.dockerconfigjson`), and the challenges of registries. Pure.

A pull secret has credentials by registry, optionally with a path below it; the longest that fits a
repository counts.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

MAX_PULL_SECRET = 1 << 20
_PARAMETER = re.compile(r'([a-zA-Z]+)="([^"]*)"')


class PullSecretError(Exception):
    """A pull secret cannot be read; the message says what is wrong and what to do."""


class _Auth(msgspec.Struct):
    auth: str = ""
    username: str = ""
    password: str = ""


class _DockerConfig(msgspec.Struct):
    auths: dict[str, _Auth] = {}


class RegistryCredentials(msgspec.Struct, frozen=True):
    """By registry or registry and path: the value of a Basic authorization."""

    by_name: Mapping[str, str] = {}

    def basic(self, registry: str, repository: str) -> str:
        """The Basic authorization for a repository; empty if there is none."""
        name = f"{registry}/{repository}"
        while name:
            if found := self.by_name.get(name):
                return f"Basic {found}"
            name = name.rpartition("/")[0]
        return ""


def parse_pull_secret(data: bytes) -> RegistryCredentials:
    """The credentials in a pull secret; PullSecretError if it is none."""
    try:
        config = msgspec.json.decode(data, type=_DockerConfig)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Not the error's text, which may have a part of the secret.
        raise PullSecretError(
            'the pull secret is not like {"auths": {"REGISTRY": {"auth": "…"}}}; correct it'
        ) from error
    # docker and podman leave an empty entry where a program of theirs keeps the password.
    entries = [(key, auth) for key, auth in config.auths.items() if auth != _Auth()]
    return RegistryCredentials({_name(key): _basic(key, auth) for key, auth in entries})


def read_pull_secret(path: str) -> RegistryCredentials:
    """The credentials in a file; none without a path."""
    if not path:
        return RegistryCredentials()
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_PULL_SECRET + 1)
    except OSError as error:
        raise PullSecretError(
            f"the pull secret {path} cannot be read: {error.strerror}; mount it, or correct the"
            " option"
        ) from error
    if len(data) > MAX_PULL_SECRET:
        raise PullSecretError(f"the pull secret {path} is larger than 1 MiB; name another file")
    return parse_pull_secret(data)


def _name(key: str) -> str:
    """A registry as in references; docker writes addresses like `https://host/v1/` too."""
    name = key.partition("://")[2] or key
    name = name.rstrip("/")
    return re.sub(r"/v[12]\Z", "", name)


def _basic(key: str, auth: _Auth) -> str:
    if not auth.auth and auth.username:
        return base64.b64encode(f"{auth.username}:{auth.password}".encode()).decode()
    try:
        user, colon, _ = base64.b64decode(auth.auth, validate=True).partition(b":")
    except binascii.Error:
        user = colon = b""
    if not user or not colon:
        raise PullSecretError(
            f"the pull secret's entry for {key[:100]!r} is not the base64 of USER:PASSWORD;"
            " correct it"
        )
    return auth.auth


class BearerChallenge(msgspec.Struct, frozen=True):
    """Where a registry says that a token is to be had, and for what."""

    realm: str
    service: str = ""
    scope: str = ""


def bearer_challenge(header: str) -> BearerChallenge | None:
    """The challenge in a `WWW-Authenticate` header; None if it asks for no token."""
    scheme, _, parameters = header[:4096].partition(" ")
    if scheme.lower() != "bearer":
        return None
    found = dict(_PARAMETER.findall(parameters))
    realm = found.get("realm", "")
    return BearerChallenge(realm, found.get("service", ""), found.get("scope", ""))
