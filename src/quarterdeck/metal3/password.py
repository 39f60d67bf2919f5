"""The password of metal3's database. It is made once, and never changed or logged."""

import base64
import secrets
import string

from quarterdeck.api.meta import Object
from quarterdeck.metal3.names import NAMESPACE, PASSWORD_KEY, PASSWORD_SECRET

LENGTH = 16
ALPHABET = string.ascii_letters + string.digits


def new_secret() -> Object:
    """A Secret with a new random password."""
    password = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    return {
        "metadata": {"name": PASSWORD_SECRET, "namespace": NAMESPACE},
        "type": "Opaque",
        "data": {PASSWORD_KEY: base64.b64encode(password.encode()).decode()},
    }
