"""What the router's environment says about access logs. Pure.

The ingress operator writes these variables and the router reads them. An empty variable counts as
an absent one.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from quarterdeck.haproxy.errors import InvalidVariableError

DIRECTORY = "/var/lib/rsyslog"
"""The directory that the router shares with its sidecar."""
DATAGRAM_SOCKET = f"{DIRECTORY}/rsyslog.sock"
"""rsyslog's `imuxsock` reads it: the value of ROUTER_SYSLOG_ADDRESS for the sidecar."""
STREAM_SOCKET = f"{DIRECTORY}/stream.sock"
"""rsyslog's `imptcp` reads it, beside the datagram socket: octet-counted RFC 3164."""

FACILITIES = (
    *("kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2"),
    *("ftp", "ntp", "audit", "alert", "cron2", "local0", "local1", "local2", "local3", "local4"),
    *("local5", "local6", "local7"),
)
"""The names of the 24 facilities, in the order of their numbers."""
LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LONGEST_CAPTURE = 16384
"""HAProxy's buffer: no header and no cookie is longer, so no capture needs more."""


class Capture(msgspec.Struct, frozen=True):
    """A header or cookie whose value goes into the line, up to a length.

    The name of a cookie that has to match exactly ends in `=`; another one is a prefix.
    """

    name: str
    length: int


class AccessLog(msgspec.Struct, frozen=True, kw_only=True):
    """Where access lines go, in which form, and what they contain."""

    address: str
    """`host:port` of a UDP endpoint, IPv6 in brackets, or the path of a datagram socket."""
    socket: Literal["stream", "datagram"] = "datagram"
    """With `stream`, lines go through a ring to the stream socket beside the address."""
    facility: str = "local1"
    level: str = "warning"
    max_length: int = 1024
    format: str | None = None
    """As the user typed it; None is HAProxy's own HTTP format."""
    request_headers: tuple[Capture, ...] = ()
    response_headers: tuple[Capture, ...] = ()
    cookie: Capture | None = None
    ignore_empty_requests: bool = False

    @property
    def to_sidecar(self) -> bool:
        """Whether the lines go to a socket of the sidecar, and not over the network."""
        return self.address.startswith("/")

    @property
    def stream_address(self) -> str | None:
        """The stream socket beside the datagram socket; None in the datagram form."""
        if not self.to_sidecar or self.socket != "stream":
            return None
        return self.address.rpartition("/")[0] + "/" + STREAM_SOCKET.rpartition("/")[2]


def access_log(environment: Mapping[str, str]) -> AccessLog | None:
    """The access log that the environment asks for; None when it asks for none.

    Raises `InvalidVariableError` with the variable, its value and the remedy.
    """
    if not (address := environment.get("ROUTER_SYSLOG_ADDRESS")):
        return None
    streams = _choice(environment, "ROUTER_LOG_SOCKET", ("stream", "datagram")) == "stream"
    return AccessLog(
        address=_address(address),
        socket="stream" if streams else "datagram",
        facility=_choice(environment, "ROUTER_LOG_FACILITY", FACILITIES) or "local1",
        level=_choice(environment, "ROUTER_LOG_LEVEL", LEVELS) or "warning",
        max_length=_number(environment, "ROUTER_LOG_MAX_LENGTH", 480, 8192) or 1024,
        format=environment.get("ROUTER_SYSLOG_FORMAT") or None,
        request_headers=_captures(environment, "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS"),
        response_headers=_captures(environment, "ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS"),
        cookie=_cookie(environment, "ROUTER_CAPTURE_HTTP_COOKIE"),
        ignore_empty_requests=environment.get("ROUTER_DONT_LOG_NULL") == "true",
    )


def _address(value: str) -> str:
    if value.startswith("/"):
        return value
    host, _, port = value.rpartition(":")
    try:
        ip = ipaddress.ip_address(host[1:-1] if host.startswith("[") else host)
    except ValueError:
        ip = None
    right_form = ip is not None and (ip.version == 6) == host.startswith("[")
    if not right_form or not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        remedy = "give ADDRESS:PORT, with an IPv6 address in brackets, or the path of a socket"
        raise InvalidVariableError("ROUTER_SYSLOG_ADDRESS", value, remedy)
    return value


def _choice(environment: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> str | None:
    value = environment.get(name)
    if value and value not in allowed:
        raise InvalidVariableError(name, value, f"use one of {', '.join(allowed)}")
    return value or None


def _number(environment: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    if not (value := environment.get(name)):
        return None
    if not re.fullmatch("[0-9]{1,9}", value) or not low <= int(value) <= high:
        raise InvalidVariableError(name, value, f"use a number from {low} to {high}")
    return int(value)


def _captures(environment: Mapping[str, str], name: str) -> tuple[Capture, ...]:
    entries = (environment.get(name) or "").split(",")
    return tuple(_capture(name, entry, _TOKEN) for entry in entries if entry)


_COOKIE = re.compile(_TOKEN.pattern + "=?")


def _cookie(environment: Mapping[str, str], name: str) -> Capture | None:
    value = environment.get(name)
    return _capture(name, value, _COOKIE) if value else None


def _capture(variable: str, entry: str, pattern: re.Pattern[str]) -> Capture:
    name, _, length = entry.rpartition(":")
    if not pattern.fullmatch(name) or not re.fullmatch("[0-9]{1,18}", length) or not int(length):
        remedy = "give NAME:LENGTH, with a name of HTTP token characters and a length from 1"
        raise InvalidVariableError(variable, entry, remedy)
    return Capture(name, min(int(length), _LONGEST_CAPTURE))
