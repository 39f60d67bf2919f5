"""Reads an access line in HAProxy's default format, as the sidecar writes it. Pure."""

import re

import msgspec

_LINE = re.compile(
    r"(?P<written>\S+) (?P<host>\S+) haproxy\[\d+\]: "
    r"(?P<client>\S+) \[(?P<time>[^\]]+)\] (?P<frontend>[^ ~]+)~? "
    r"(?P<backend>[^/ ]+)/(?P<server>\S+) "
    r"(?P<timers>[-+/\d]+) (?P<status>-?\d+) \+?(?P<bytes>\d+) (?P<request_cookie>\S+) "
    r"(?P<response_cookie>\S+) (?P<state>\S{4}) (?P<connections>[+/\d]+) (?P<queues>[/\d]+) "
    r"(?:(?P<captures>\{[^{}\"]*\}(?: \{[^{}\"]*\})?) )?\"(?P<request>[^\"]*)(?P<end>\"?)"
)


class AccessLine(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What an access line says."""

    time: str
    client: str
    frontend: str
    backend: str
    server: str
    status: int
    bytes: int
    milliseconds: int
    """From the first byte of the request to the last one of the answer."""
    state: str
    """How the session ended, in HAProxy's four letters."""
    captures: str = ""
    request: str
    written: str
    """When rsyslog wrote the line."""


def parse_access_line(line: str) -> AccessLine | None:
    """The line's fields; None if it has another format."""
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    # HAProxy writes quotes and braces of a request as `#22`, but a cookie as it came. So a cookie
    # can look like the fields behind it only in a line that is cut within the cookie.
    if not match["end"] and (match["request_cookie"], match["response_cookie"]) != ("-", "-"):
        return None
    total = match["timers"].rpartition("/")[2].lstrip("+")
    if not total.lstrip("-").isdigit():
        return None
    return AccessLine(
        time=match["time"],
        client=match["client"],
        frontend=match["frontend"],
        backend=match["backend"],
        server=match["server"],
        status=int(match["status"]),
        bytes=int(match["bytes"]),
        milliseconds=int(total),
        state=match["state"],
        captures=match["captures"] or "",
        request=match["request"],
        written=match["written"],
    )
