"""The rules that keep the console safe in a browser. Pure.

They answer four questions about a request: is it meant for this console, does it come from one of
its own pages, may a token be sent over it, and where may a log-in continue.
"""

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from quarterdeck.proxies import is_loopback

SESSION_COOKIE = "quarterdeck-session"
MAX_FORM_BYTES = 64 * 1024
MAX_FIELDS = 60
MAX_VALUE = 8192
"""The most characters of one field; a token of a cloud has some thousand."""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Not `no-referrer`: with it a browser sends `Origin: null` with our own forms.
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
"""Sent with every answer."""
STRICT_TRANSPORT = "max-age=31536000"

_LOCAL_PATH = re.compile(r"/[A-Za-z0-9._~/%?=&+-]*")


class BadForm(Exception):  # noqa: N818 - reads as what it is
    """A form that no page of ours sends; `status` is the answer's."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """How a request reached the console."""

    peer: str
    """The address of the other end of the connection."""
    host: str
    """The Host header."""
    tls: bool
    """Whether the connection itself is TLS."""
    forwarded_proto: str = ""
    """The X-Forwarded-Proto header."""
    forwarded: bool = False
    """Whether a proxy has relayed the request, by its headers."""


def host_of(header: str) -> str:
    """The name or address in a Host header, without the port; empty if it is not one."""
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return ""
    if not header or parts.path or parts.query or parts.fragment or "@" in header:
        return ""
    return (parts.hostname or "").rstrip(".")


def is_own_host(header: str, names: Iterable[str]) -> bool:
    """Whether a Host header names this console.

    A page of somebody else can let its own name point to this machine; then the header has that
    name.
    """
    host = host_of(header)
    return bool(host) and (is_loopback(host) or host in {name.lower() for name in names})


def is_encrypted(arrival: Arrival, *, behind_tls: bool) -> bool:
    """Whether the browser's connection is TLS, ours or that of the proxy before us."""
    return arrival.tls or (behind_tls and arrival.forwarded_proto.lower() == "https")


def session_cookie(host: str, *, encrypted: bool) -> str:
    """The name of the session's cookie.

    Over TLS a browser takes the name only with Secure and for the whole host, so nobody else can
    plant it. Without TLS, which is on loopback, it has the port: a browser sends the cookies of a
    host to all its ports, and another console there has its own.
    """
    if encrypted:
        return f"__Host-{SESSION_COOKIE}"
    try:
        port = urlsplit(f"//{host}").port or 80
    except ValueError:
        port = 80
    return f"{SESSION_COOKIE}-{port}"


def last_address(forwarded_for: Sequence[str]) -> str:
    """The address in the lines of X-Forwarded-For that the proxy before us has added.

    It is the last one: a client can send as many as it likes before it.
    """
    return forwarded_for[-1].rpartition(",")[2].strip()[:64] if forwarded_for else ""


def stays_on_machine(arrival: Arrival) -> bool:
    """Whether the request did not leave the machine of the browser, or `kubectl port-forward` did.

    A port-forward reaches the pod from its own loopback address, with the browser's Host header.
    """
    return (
        is_loopback(arrival.peer) and is_loopback(host_of(arrival.host)) and not arrival.forwarded
    )


def why_no_log_in(arrival: Arrival, *, behind_tls: bool) -> str:
    """Why a token must not be sent over this connection, and the remedy; empty if it may."""
    if is_encrypted(arrival, behind_tls=behind_tls) or stays_on_machine(arrival):
        return ""
    return (
        "This connection is plain HTTP, so others on its way could read your token. Use "
        "kubectl port-forward and open http://localhost, start the console with --tls-cert and "
        "--tls-key, or put it behind an Ingress with TLS and start it with --behind-tls."
    )


def is_own_origin(
    headers: Mapping[str, str], host: str, names: Iterable[str], *, encrypted: bool
) -> bool:
    """Whether a form comes from a page of this console, by what its browser says.

    A browser that says nothing is not refused for that: the token in the form decides.
    """
    if headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("Origin")
    if origin is None:
        return True
    scheme = "https" if encrypted else "http"
    return origin.lower() == f"{scheme}://{host.lower()}" and is_own_host(host, names)


def same_secret(given: str, wanted: str) -> bool:
    """Whether the two texts are equal, in a time that does not tell how much of them is."""
    # A cookie can have bytes that are no UTF-8; they come as surrogates.
    left, right = (text.encode(errors="surrogatepass") for text in (given, wanted))
    return bool(wanted) and hmac.compare_digest(left, right)


def safe_next(target: str) -> str:
    """The path to continue at after a log-in; `/` if it is not a plain path of this console."""
    decoded = unquote(target)
    plain = _LOCAL_PATH.fullmatch(target) and not decoded.startswith("//")
    if not plain or "\\" in decoded or not decoded.isprintable() or "/../" in decoded:
        return "/"
    return "/" if target.startswith(("/login", "/link", "/logout", "/live")) else target


def parsed_form(content_type: str, body: bytes) -> dict[str, str]:
    """The fields of a form; of a field that is there twice, the last value."""
    if content_type != "application/x-www-form-urlencoded":
        raise BadForm(415, "this is not a form of the console")
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=False,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise BadForm(400, "the form cannot be read") from None
    for name, value in pairs:
        if len(value) > MAX_VALUE or len(name) > 200:
            raise BadForm(400, "a field of the form is too long")
        if any(ord(character) < 32 and character not in "\t\r\n" for character in name + value):
            raise BadForm(400, "a field of the form has a control character")
    return dict(pairs)
