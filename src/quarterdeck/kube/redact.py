"""Decides what of a body may be written to a log; used at verbosity 8 and up."""

import re

LIMIT = 10_000

_SECRET_PATHS = re.compile(
    r"/secrets(/|$|\?)|/token(\?|$)|/tokenreviews|/certificatesigningrequests"
)
_SECRET_VALUES = re.compile(
    # private keys, also with their line ends escaped as in JSON
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)"
    # JSON Web Tokens
    r"|eyJ[\w-]{8,}\.[\w-]+\.[\w-]*"
    # the fields of a kubeconfig, in YAML or JSON, escaped or not
    r'|(?P<field>(client-key-data|password|(?<!next)token|id-token|refresh-token)\\*"?\s*:\s*)'
    r'(?P<quote>\\*")?[^\s"\\,}]+',
    re.DOTALL | re.IGNORECASE,
)


def loggable(path: str, body: bytes) -> str:
    """The body as text without secrets: none at all where the resource is one."""
    if not body:
        return ""
    if _SECRET_PATHS.search(path) or b'"kind":"Secret"' in body or b'"kind":"SecretList"' in body:
        return f"<{len(body)} bytes, secret>"
    text = _SECRET_VALUES.sub(_hide, body.decode(errors="replace"))
    return text if len(text) <= LIMIT else f"{text[:LIMIT]}… ({len(text)} characters)"


def _hide(match: re.Match[str]) -> str:
    return f"{match['field'] or ''}{match['quote'] or ''}<hidden>"
