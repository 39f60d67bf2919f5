"""The lines of haproxy.cfg that access logging needs, by section. Pure.

The router renders its configuration with them, and `quarterdeck ingress explain` shows them.
"""

import msgspec

from quarterdeck.haproxy.access_log import AccessLog, Capture
from quarterdeck.haproxy.log_format import encoded
from quarterdeck.haproxy.quoting import quoted
from quarterdeck.haproxy.sidecar import CANARY_TAG

RING = "access"
_RING_BYTES = 16 * 1024 * 1024
"""The lines of a few seconds at full speed, for the time in which rsyslog is away."""
LAST_LINES_LEVEL = "crit"
"""The level of the lines of a worker that a reload has replaced, and of no message of HAProxy."""
_DEFAULT_COOKIE_LENGTH = 63
_DEFAULT_URI_LENGTH = 1024


class AccessLogLines(msgspec.Struct, frozen=True, kw_only=True):
    """The lines for each section, without indentation. All are empty when logging is off."""

    global_section: tuple[str, ...] = ()
    ring_section: tuple[str, ...] = ()
    """The whole section with its head; empty when the ring is not used."""
    defaults: tuple[str, ...] = ()
    frontend: tuple[str, ...] = ()
    """For every HTTP frontend."""


def access_log_lines(log: AccessLog | None) -> AccessLogLines:
    """The lines of an access log; raises `RefusedTextError` for a format that no line can carry."""
    if log is None:
        return AccessLogLines()
    return AccessLogLines(
        global_section=_global(log),
        ring_section=_ring(log),
        defaults=_defaults(log),
        frontend=(*_captures(log), *_last_lines(log)),
    )


def _global(log: AccessLog) -> tuple[str, ...]:
    target = f"ring@{RING}" if log.stream_address else _target(log.address)
    lines = [
        f"log {target} len {log.max_length} {log.facility} {log.level}",
        "log-send-hostname",
    ]
    if log.stream_address:
        lines.insert(
            1, f"log {_target(log.address)} len {log.max_length} {log.facility} {LAST_LINES_LEVEL}"
        )
    if log.cookie and log.cookie.length > _DEFAULT_COOKIE_LENGTH:
        lines.append(f"tune.http.cookielen {log.cookie.length}")
    if log.max_length > _DEFAULT_URI_LENGTH:
        # Otherwise HAProxy cuts a long URI, and the line never gets as long as it may.
        lines.append(f"tune.http.logurilen {log.max_length}")
    return tuple(lines)


def _target(address: str) -> str:
    # The address of an endpoint was parsed, so only a path needs quotes.
    return quoted(address) if address.startswith("/") else address


def _ring(log: AccessLog) -> tuple[str, ...]:
    if (address := log.stream_address) is None:
        return ()
    return (
        f"ring {RING}",
        "format rfc3164",
        # The line, and room for the header before it.
        f"maxlen {log.max_length + 512}",
        f"size {_RING_BYTES}",
        "timeout connect 5s",
        "timeout server 10s",
        f"server rsyslog {quoted(address)} log-proto octet-count",
    )


def _defaults(log: AccessLog) -> tuple[str, ...]:
    form = "option httplog" if log.format is None else f"log-format {quoted(encoded(log.format))}"
    lines = ["log global", form]
    if log.ignore_empty_requests:
        lines.append("option dontlognull")
    return tuple(lines)


def _captures(log: AccessLog) -> tuple[str, ...]:
    lines = [_capture("request header", header) for header in log.request_headers]
    lines += [_capture("response header", header) for header in log.response_headers]
    if log.cookie:
        lines.append(_capture("cookie", log.cookie))
    return tuple(lines)


def _last_lines(log: AccessLog) -> tuple[str, ...]:
    """Send the lines of a worker that is stopping to the datagram socket.

    Measured, HAProxy 2.6: it closes its ring's connection when it is told to stop, and not after
    the last request. The second target has only lines of this level.
    """
    if not log.stream_address:
        return ()
    return tuple(
        f"http-{when} set-log-level {LAST_LINES_LEVEL} if {{ stopping }}"
        for when in ("request", "response")
    )


def _capture(what: str, capture: Capture) -> str:
    return f"capture {what} {quoted(capture.name)} len {capture.length}"


def canary_frontend(log: AccessLog, bind: str) -> tuple[str, ...]:
    """The frontend whose lines are canaries: the value of the header `X-Canary`, by their tag."""
    if not log.to_sidecar:
        return ()
    return (
        "frontend canary",
        f"bind {quoted(bind)} mode 600",
        f"log-tag {CANARY_TAG}",
        "http-request set-var(txn.canary) req.hdr(x-canary)",
        "log-format %[var(txn.canary)]",
        "http-request return status 204",
    )
