"""The password of metal3's database. It is made once, and never changed or logged."""

import base64
import secrets
import string

from quarterdeck.api.meta import Object
from quarterdeck.metal3.names import NAMESPACE, PASSWORD_KEY, PASSWORD_SECRET

LENGTH = 16
ALPHABET = string.ascii_letters + string.digits


class PasswordMissing(Exception):  # noqa: N818 - reads as what it is
    """A Secret that exists has no password: metal3's pod could not start."""


def check_secret(secret: Object) -> None:
    """Raise `PasswordMissing` unless the Secret has a password."""
    if not (secret.get("data") or {}).get(PASSWORD_KEY):
        where = f"Secret {NAMESPACE}/{PASSWORD_SECRET}: data.{PASSWORD_KEY}"
        raise PasswordMissing(f"{where}: missing: delete the Secret, and a new one is made")


def new_secret() -> Object:
    """A Secret with a new random password."""
    password = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    return {
        "metadata": {"name": PASSWORD_SECRET, "namespace": NAMESPACE},
        "type": "Opaque",
        "data": {PASSWORD_KEY: base64.b64encode(password.encode()).decode()},
    }
