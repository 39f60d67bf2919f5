"""Decides what of a body may be written to a log; used at verbosity 8 and up.

Nothing of a Secret but its name, no token, no key, no password, wherever in an object it stands:
in a field that is named so, in a list or a patch, in an environment variable, on a command line,
in a manifest or a kubeconfig that is itself the text of a field. When in doubt it is hidden: a
line too little can be asked for elsewhere, a secret in a log cannot be taken back. The server's
bookkeeping of who owns which field is left out too: it is longer than all the rest.
"""

import re
from typing import Any

import msgspec

LIMIT = 10_000
"""Characters of a body that are written."""
READABLE = 1_000_000
"""Bytes of a body that are looked through; of a longer one only its size is written."""
HIDDEN = "<hidden>"

_SECRET_PATHS = re.compile(
    r"/secrets(/|$|\?)|/token(\?|$)|/tokenreviews|/certificatesigningrequests"
    r"|/(user)?oauth(access|authorize)tokens"
)
_SECRET_NAMES = re.compile(
    r"passw(or)?d|^pass(phrase)?$|(?<!next)token$|secret$|secret_?(access_?)?key"
    r"|api_?key|private_?key|client_?key_?data|ssh_?key|tls\.key|\.key$|\.pem$"
    r"|credential|authorization|dockerc(on)?f|htpasswd|kubeconfig",
    re.IGNORECASE,
)
_SECRET_MANIFEST = re.compile(r"\bkind\W{1,12}Secret(List)?\b")
_SECRET_VALUES = re.compile(
    # private keys, also with their line ends escaped as in JSON
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)"
    # JSON Web Tokens
    r"|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
    # what an Authorization header says
    r"|(?P<scheme>\b(bearer|basic)\s+)[\w.~+/-]{6,}=*"
    # a password in an address
    r"|(?P<address>\w+://[^\s/:@\"]*:)[^\s/@\"]+(?=@)"
    # an option on a command line
    r"|(?P<option>--?[\w-]*(passw(or)?d|token|secret|api-?key)[\w-]*=)[^\s\"\\]+"
    # the fields of a kubeconfig, in YAML or JSON, escaped or not
    r'|(?P<field>(client-key-data|passw(or)?d|(?<!next)token|id-token|refresh-token)\\*"?\s*:\s*)'
    r'(?P<quote>\\*")?[^\s"\\,}]+',
    re.DOTALL | re.IGNORECASE,
)


def is_secret(path: str) -> bool:
    """Whether what is read and written at this path is a secret as a whole."""
    return _SECRET_PATHS.search(path) is not None


def loggable(path: str, body: bytes) -> str:
    """The body as text without secrets: none at all where the resource is one."""
    if not body:
        return ""
    if is_secret(path):
        return f"<{len(body)} bytes, secret>"
    if len(body) > READABLE:
        return f"<{len(body)} bytes>"
    try:
        text = msgspec.json.encode(_without_secrets(msgspec.json.decode(body))).decode()
    except msgspec.MsgspecError:
        text = _scrubbed(body.decode(errors="replace"))
    return text if len(text) <= LIMIT else f"{text[:LIMIT]}… ({len(text)} characters)"


def _without_secrets(value: Any) -> Any:
    match value:
        case str():
            return _scrubbed(value)
        case list():
            return [_without_secrets(item) for item in value]
        case dict() if value.get("kind") in ("Secret", "SecretList"):
            return _only_named(value)
        case dict():
            hidden = _named_value_is_secret(value)
            return {
                key: HIDDEN if _hides(key, inner, hidden) else _without_secrets(inner)
                for key, inner in value.items()
                if key != "managedFields"
            }
        case _:
            return value


def _hides(key: str, inner: Any, named_value: bool) -> bool:
    """Whether a field is a secret because of its name, or of the name beside it."""
    if not isinstance(inner, str) or not inner:
        return False
    return _SECRET_NAMES.search(key) is not None or (named_value and key == "value")


def _named_value_is_secret(entry: dict[str, Any]) -> bool:
    """Whether this is an environment variable, a header or a patch of a field that is a secret."""
    name = entry.get("name") or entry.get("path")
    if not isinstance(name, str) or "value" not in entry:
        return False
    return _SECRET_NAMES.search(name.rpartition("/")[2]) is not None


def _only_named(secret: dict[str, Any]) -> dict[str, Any]:
    meta = secret.get("metadata")
    named = {
        field: meta[field]
        for field in ("namespace", "name")
        if isinstance(meta, dict) and isinstance(meta.get(field), str)
    }
    return {"kind": secret["kind"], "metadata": named, "data": HIDDEN}


def _scrubbed(text: str) -> str:
    """The text without what looks like a secret; nothing of it where it is a Secret's manifest."""
    if _SECRET_MANIFEST.search(text):
        return HIDDEN
    return _SECRET_VALUES.sub(_hide, text)


def _hide(match: re.Match[str]) -> str:
    kept = match["field"] or match["scheme"] or match["address"] or match["option"] or ""
    return f"{kept}{match['quote'] or ''}{HIDDEN}"
