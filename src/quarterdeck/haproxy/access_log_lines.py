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
RING_FACILITIES = ("local0", "local1")
"""Of lines in the ring, in turn from worker to worker: so rsyslog counts each one's lines apart."""
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


def access_log_lines(log: AccessLog | None, generation: int = 1) -> AccessLogLines:
    """The lines of an access log; raises `RefusedTextError` for a format that no line can carry."""
    if log is None:
        return AccessLogLines()
    return AccessLogLines(
        global_section=_global(log, generation),
        ring_section=_ring(log),
        defaults=_defaults(log),
        frontend=_captures(log),
    )


def _global(log: AccessLog, generation: int) -> tuple[str, ...]:
    target, facility = _target(log.address), log.facility
    if log.stream_address:
        # The sidecar's output has no facility.
        target, facility = f"ring@{RING}", RING_FACILITIES[generation % len(RING_FACILITIES)]
    lines = [f"log {target} len {log.max_length} {facility} {log.level}", "log-send-hostname"]
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
