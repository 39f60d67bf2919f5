"""Removes secrets from a body before it is logged, at verbosity 8 and up.

It shows what is known to be harmless, and hides everything else:

- Of a Secret only its name; of a body that is not JSON or longer than MAX_PARSED only its size.
- The data of ConfigMaps, the values of environment variables and headers, arguments and commands
  only as lengths, unless their name is on a list of harmless names.
- A field with the name of a secret is hidden, be it a text or a list of texts.
- A text of several lines, with braces or of over MAX_TEXT characters only as its length; so is
  the message of a refusal, which may quote the refused value. In other texts a word is hidden
  if it is a token, a password in an address, or comes after the name of a secret.

When in doubt a value is hidden: it can be read elsewhere, but a secret in a log cannot be taken
back. managedFields are left out too, because they are longer than the rest. Every step is linear in
the size of the body, which is bounded: this runs in the event loop.
"""

import re
from typing import Any

import msgspec

MAX_LOGGED = 10_000
"""The most characters of a body that are logged."""
MAX_PARSED = 200_000
"""The most bytes of a body that are parsed; of a longer body only the size is logged."""
MAX_TEXT = 1000
"""The most characters of a text that is shown."""
HIDDEN = "<hidden>"

_SECRET_PATHS = re.compile(
    r"/secrets(/|$|\?)|/token(\?|$)|/tokenreviews|/certificatesigningrequests"
    r"|/(user)?oauth(access|authorize)tokens"
)
_SECRET_NAMES = re.compile(
    r"passw(or)?d|pass(phrase)?$|pwd$|(?<!next)tokens?$|secrets?$|secret_?(access_?)?key"
    r"|(api|access|account|client|encryption|hmac|jwt|license|master|private|session|shared"
    r"|signing|ssh|storage)[_-]?keys?(?!_?(id|name|ref)$)|client[_-]?key[_-]?data"
    r"|\.key$|\.pem$|credential|authorization|dockerc(on)?f|htpasswd|kubeconfig",
    re.IGNORECASE,
)
_OPAQUE = frozenset({"data", "binaryData", "stringData"})
_COMMANDS = frozenset({"args", "command"})
_HARMLESS_VARIABLES = frozenset(
    {
        "CLUSTER_PROFILE",
        "KUBERNETES_SERVICE_HOST",
        "KUBERNETES_SERVICE_PORT",
        "LOG_LEVEL",
        "NODE_NAME",
        "OPERATOR_NAME",
        "POD_IP",
        "POD_NAME",
        "POD_NAMESPACE",
        "RELEASE_VERSION",
        "TZ",
    }
)
_HARMLESS_OPTIONS = frozenset(
    {
        "bind-address",
        "cluster-profile",
        "leader-elect",
        "log-format",
        "metrics-port",
        "namespace",
        "operator",
        "probes-port",
        "release-version",
        "releases",
        "v",
        "verbosity",
    }
)
_BETWEEN_WORDS = re.compile(r"""([\s"'`,;(){}\[\]<>\\]+)""")
_DOCUMENT_MARKS = ("\n", "{", "PRIVATE KEY")
"""A text with one of these is a document of unknown content."""
_SCHEMES = ("bearer", "basic")
_LONG_WORD = 24
"""A word of this many characters with capitals, small letters and digits is a key or a token."""
_STATUS_FIELDS = ("kind", "apiVersion", "status", "reason", "code")
_CAUSE_FIELDS = ("reason", "field")


def is_secret(path: str) -> bool:
    """Whether the whole body of requests to this path is secret."""
    return _SECRET_PATHS.search(path) is not None


def loggable(path: str, body: bytes) -> str:
    """The body as text without secrets; only its size if the resource is secret."""
    if not body:
        return ""
    if is_secret(path):
        return f"<{len(body)} bytes, secret>"
    if len(body) > MAX_PARSED:
        return f"<{len(body)} bytes>"
    try:
        text = msgspec.json.encode(_shown("", msgspec.json.decode(body))).decode()
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return f"<{len(body)} bytes, not JSON>"
    return text if len(text) <= MAX_LOGGED else f"{text[:MAX_LOGGED]}… ({len(text)} characters)"


def _shown(name: str, value: Any) -> Any:
    """The value of a field of this name, without secrets."""
    match value:
        case str():
            if value and _names_secret(name):
                return HIDDEN
            return _size(value) if name in _OPAQUE else _without_secrets(value)
        case list() if name in _COMMANDS:
            return [_argument(one) if isinstance(one, str) else _shown("", one) for one in value]
        case list():
            return [_shown(name if isinstance(one, str) else "", one) for one in value]
        case dict() if value.get("kind") in ("Secret", "SecretList"):
            return _only_named(value)
        case dict() if value.get("kind") == "Status" and "metadata" in value:
            return _refusal(value)
        case dict():
            return _shown_fields(name, value)
        case _:
            return value


def _shown_fields(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for key, value in fields.items():
        if key == "managedFields":
            continue
        if name in _OPAQUE and isinstance(value, str):
            shown[key] = HIDDEN if value and _names_secret(key) else _size(value)
        elif key == "value":
            shown[key] = _named_value(fields, value)
        else:
            shown[key] = _shown(key, value)
    return shown


def _named_value(entry: dict[str, Any], value: Any) -> Any:
    """The value of an entry with a name (a variable, a header) or a path (a patch)."""
    if isinstance(path := entry.get("path"), str):
        *parents, field = path.split("/")
        hides = _OPAQUE.union(_COMMANDS, {"env"}).intersection(parents)
        return _size(value) if hides and isinstance(value, str) else _shown(field, value)
    name = entry.get("name")
    if isinstance(value, str) and isinstance(name, str) and name not in _HARMLESS_VARIABLES:
        return HIDDEN if value and _names_secret(name) else _size(value)
    return _shown("value", value)


def _argument(text: str) -> str:
    """An argument of a command; shown only if it is a harmless option."""
    option, equals, _ = text.partition("=")
    name = option.removeprefix("--")
    if name != option and name in _HARMLESS_OPTIONS:
        return _without_secrets(text)
    return f"{option}={HIDDEN}" if equals and _names_secret(name) else _size(text)


def _only_named(secret: dict[str, Any]) -> dict[str, Any]:
    meta = secret.get("metadata")
    named = {
        field: meta[field]
        for field in ("namespace", "name")
        if isinstance(meta, dict) and isinstance(meta.get(field), str)
    }
    return {"kind": secret["kind"], "metadata": named, "data": HIDDEN}


def _refusal(status: dict[str, Any]) -> dict[str, Any]:
    """A Status with its reason and fields, without messages, which may quote values."""
    shown = {field: status[field] for field in _STATUS_FIELDS if field in status}
    if message := status.get("message"):
        shown["message"] = _size(str(message))
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    if isinstance(causes, list):
        shown["causes"] = [
            {field: cause[field] for field in _CAUSE_FIELDS if field in cause}
            for cause in causes
            if isinstance(cause, dict)
        ]
    return shown


def _names_secret(name: str) -> bool:
    return len(name) <= MAX_TEXT and _SECRET_NAMES.search(name) is not None


def _size(text: str) -> str:
    return f"<{len(text)} characters>"


def _without_secrets(text: str) -> str:
    """A short line without its secret words; of any other text the length."""
    if len(text) > MAX_TEXT or any(mark in text for mark in _DOCUMENT_MARKS):
        return _size(text)
    words = _BETWEEN_WORDS.split(text)
    before = ""
    for index in range(0, len(words), 2):
        word = words[index]
        if not word:
            continue
        words[index] = _word(word, before)
        # `password = X` is three words, `password: X` is two.
        before = f"{before}=" if word in ("=", ":", ":=") else word
    return "".join(words)


def _word(word: str, before: str) -> str:
    """The word without its secret part, given the word before it."""
    if word in ("=", ":", ":="):
        return word
    label = before.rstrip(":=")
    is_named = label != before or before.startswith("-")
    if label.lower() in _SCHEMES or (is_named and label and _names_secret(label)):
        return HIDDEN
    name, sign, value = _assignment(word)
    if sign and value and _names_secret(name):
        return f"{name}{sign}{HIDDEN}"
    scheme, mark, rest = word.partition("://")
    authority, slash, path = rest.partition("/")
    if mark and "@" in authority:
        return f"{scheme}://{HIDDEN}@{authority.rpartition('@')[2]}{slash}{path}"
    return HIDDEN if _is_opaque(word) else word


def _assignment(word: str) -> tuple[str, str, str]:
    """The parts of a word of the form `name=value` or `name:value`."""
    at = min((found for found in (word.find("="), word.find(":")) if found >= 0), default=-1)
    return (word[:at], word[at], word[at + 1 :]) if at >= 0 else (word, "", "")


def _is_opaque(word: str) -> bool:
    """Whether a word is a token or a key: long, with capitals, small letters and digits."""
    return word.startswith("eyJ") or (
        len(word) >= _LONG_WORD
        and any(map(str.isdigit, word))
        and any(map(str.isupper, word))
        and any(map(str.islower, word))
        and "/" not in word[:8]
    )
