"""Which kubeconfigs a hosted cluster version operator is given. Pure.

Whoever may write the Secret need not be allowed to run programs in the management cluster, or to
read the files of its pods. So the kubeconfig has all its data in itself: it names no program and no
file. No message shows a value of it, because each may be a credential.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from quarterdeck.strict_yaml import Document, decode_yaml

MAX_BYTES = 64 << 10
"""The most bytes of a kubeconfig, which is read at each reconcile; real ones have some thousand."""
REMEDY = "write one with all data in it, like: kubectl config view --minify --flatten"
_FILE, _PROGRAM = "names a file", "runs a program"
_REFUSED = {
    ("clusters", "cluster"): {
        "certificate-authority": _FILE,
        "insecure-skip-tls-verify": "leaves the server unverified",
    },
    ("users", "user"): {
        "client-certificate": _FILE,
        "client-key": _FILE,
        "tokenFile": _FILE,
        "exec": _PROGRAM,
        "auth-provider": _PROGRAM,
    },
}


def kubeconfig_fault(encoded: str) -> str:
    """Why a kubeconfig in base64 is not used, and the remedy, in one line; empty if it is used."""
    why = next(_faults(encoded), "")
    return f"{why}; {REMEDY}" if why else ""


def _faults(encoded: str) -> Iterator[str]:
    try:
        data = base64.b64decode(encoded)
        text = data.decode()
    except (binascii.Error, UnicodeDecodeError):
        yield "its key kubeconfig is not text"
        return
    if len(data) > MAX_BYTES:
        yield f"its key kubeconfig has more than {MAX_BYTES} bytes"
        return
    match list(decode_yaml(text)):
        case [Document(value=dict() as content)]:
            yield from _refused_fields(content)
        case _:
            yield "its key kubeconfig is not one YAML object"


def _refused_fields(content: dict[str, Any]) -> Iterator[str]:
    for (plural, singular), refused in _REFUSED.items():
        entries = content.get(plural) or []
        if not isinstance(entries, list):
            yield f"{plural} of its kubeconfig is not a list"
            return
        for number, entry in enumerate(entries):
            inner = entry.get(singular) if isinstance(entry, dict) else None
            for field, why in refused.items():
                # What the reader of the file takes for a value: an empty object too.
                if isinstance(inner, dict) and inner.get(field) not in (None, "", False):
                    yield f"{plural}[{number}].{singular}.{field} of its kubeconfig {why}"
