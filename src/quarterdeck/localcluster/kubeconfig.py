"""Renders kubeconfigs: one user and one server, with the credentials inside."""

from base64 import b64encode

import yaml

from quarterdeck.localcluster.certificates import KeyPair


def with_certificate(server: str, authority: bytes, pair: KeyPair, *, user: str) -> bytes:
    """A kubeconfig with a client certificate."""
    return _render(
        server,
        authority,
        user,
        {
            "client-certificate-data": b64encode(pair.certificate).decode(),
            "client-key-data": b64encode(pair.key).decode(),
        },
    )


def with_token(server: str, authority: bytes, token: str, *, user: str) -> bytes:
    """A kubeconfig with a token, as of a ServiceAccount."""
    return _render(server, authority, user, {"token": token})


def _render(server: str, authority: bytes, user: str, credentials: dict[str, str]) -> bytes:
    cluster = {"server": server, "certificate-authority-data": b64encode(authority).decode()}
    name = "quarterdeck"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    return yaml.safe_dump(config, sort_keys=False).encode()
