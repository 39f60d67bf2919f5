"""What an ingress controller logs, and where to.

Three types have one field for each of their members, and grow by one field:

- `IngressControllerLogging`: the types of logs
- `LoggingDestinations`: the destinations; the discriminator `type` and the rules of the union
  follow from its fields
- `AccessLogging`: the destination and the parameters of access logs

The module of the same name in `quarterdeck.operators.ingress.logging` says what a member adds to
the router's pod.
"""

from enum import StrEnum
from typing import Annotated

from quarterdeck.api.meta import Part
from quarterdeck.api.schema import (
    NULLABLE,
    ValidationRule,
    default,
    items,
    keywords,
    number,
    one_of,
    rules,
    text,
)
from quarterdeck.api.union import union_member, union_rules, union_types

DEFAULT_MAX_LENGTH = 1024
"""The most bytes of a line, if nothing else is set."""
HTTP_NAME = "-!#$%&'*+.0-9A-Z^_`a-z|~"
"""The characters of the name of a header or cookie, for a pattern."""


class Facility(StrEnum):
    """The facilities of syslog, as HAProxy names them."""

    KERN = "kern"
    USER = "user"
    MAIL = "mail"
    DAEMON = "daemon"
    AUTH = "auth"
    SYSLOG = "syslog"
    LPR = "lpr"
    NEWS = "news"
    UUCP = "uucp"
    CRON = "cron"
    AUTH2 = "auth2"
    FTP = "ftp"
    NTP = "ntp"
    AUDIT = "audit"
    ALERT = "alert"
    CRON2 = "cron2"
    LOCAL0 = "local0"
    LOCAL1 = "local1"
    LOCAL2 = "local2"
    LOCAL3 = "local3"
    LOCAL4 = "local4"
    LOCAL5 = "local5"
    LOCAL6 = "local6"
    LOCAL7 = "local7"


# With `oneOf`, an IPv4-mapped IPv6 address would be refused: it has both formats.
_IP_ADDRESS = keywords(anyOf=[{"format": "ipv4"}, {"format": "ipv6"}])


class SyslogDestination(Part):
    """A syslog endpoint that receives messages over UDP."""

    address: Annotated[str, _IP_ADDRESS]
    """The IPv4 or IPv6 address of the endpoint."""

    port: Annotated[int, keywords(format="int32"), number(minimum=1, maximum=65535)]
    """The UDP port of the endpoint."""

    facility: Annotated[str | None, one_of(Facility)] = None
    """The syslog facility of the messages; local1 by default."""

    max_length: Annotated[
        int | None,
        keywords(format="int32"),
        number(minimum=480, maximum=4096),
        default(DEFAULT_MAX_LENGTH),
    ] = None
    """The most bytes of a message; a longer one is cut."""


class ContainerDestination(Part):
    """The sidecar container `logs` of the router's pod, which writes the lines to its output."""

    max_length: Annotated[
        int | None,
        keywords(format="int32"),
        number(minimum=480, maximum=8192),
        default(DEFAULT_MAX_LENGTH),
    ] = None
    """The most bytes of a message; a longer one is cut."""


class LoggingDestinations(Part):
    """The parameters of each destination; only those of the chosen one are set."""

    syslog: SyslogDestination | None = None
    """The parameters of the destination Syslog. Present only if type is Syslog."""

    container: ContainerDestination | None = None
    """The parameters of the destination Container. Present only if type is Container."""


class LoggingDestination(LoggingDestinations):
    """Where log messages go."""

    type: Annotated[str, keywords(enum=union_types(LoggingDestinations))]
    """Container: the sidecar `logs` of the router's pod writes the lines to its output, where a
    log collector or `kubectl logs` reads them. Lines may be dropped if the container runtime or
    the collector is too slow. Syslog: the lines go to the endpoint in `syslog`."""

    @property
    def member(self) -> str:
        """The name of the field with the chosen destination's parameters."""
        return union_member(LoggingDestinations, self.type)


class CaptureHeader(Part):
    """A header whose value is in the log line."""

    name: Annotated[str, text(pattern=f"^[{HTTP_NAME}]+$")]
    """The name of the header."""

    max_length: Annotated[int, number(minimum=1)]
    """The most bytes of the value; a longer one is cut."""


Headers = Annotated[tuple[CaptureHeader, ...] | None, NULLABLE]


class CaptureHeaders(Part):
    """The headers whose values are in the log line."""

    request: Headers = None
    """Headers of the request."""

    response: Headers = None
    """Headers of the response."""


class CookieMatchType(StrEnum):
    """How a cookie's name is compared."""

    EXACT = "Exact"
    PREFIX = "Prefix"


_COOKIE_NAME = text(min_length=0, max_length=1024, pattern=f"^[{HTTP_NAME}]*$")
_NAMED_COOKIE = (
    ValidationRule(
        "self.matchType != 'Exact' || (has(self.name) && size(self.name) > 0)",
        "name is required when matchType is Exact",
        ".name",
    ),
    ValidationRule(
        "self.matchType != 'Prefix' || (has(self.namePrefix) && size(self.namePrefix) > 0)",
        "namePrefix is required when matchType is Prefix",
        ".namePrefix",
    ),
    ValidationRule(
        "self.matchType == 'Exact' || !has(self.name) || size(self.name) == 0",
        "name is forbidden unless matchType is Exact; remove it, or change matchType",
        ".name",
    ),
    ValidationRule(
        "self.matchType == 'Prefix' || !has(self.namePrefix) || size(self.namePrefix) == 0",
        "namePrefix is forbidden unless matchType is Prefix; remove it, or change matchType",
        ".namePrefix",
    ),
)


class CaptureCookie(Part):
    """A cookie whose value is in the log line."""

    match_type: Annotated[str, one_of(CookieMatchType)]
    """Exact: the cookie `name`. Prefix: the first cookie whose name starts with `namePrefix`."""

    name: Annotated[str | None, _COOKIE_NAME] = None
    """The name of the cookie, if matchType is Exact."""

    name_prefix: Annotated[str | None, _COOKIE_NAME] = None
    """The start of the name of the cookie, if matchType is Prefix."""

    max_length: Annotated[int | None, number(minimum=1, maximum=1024)] = None
    """The most bytes of name and value together, 256 by default; more are cut."""


class EmptyRequests(StrEnum):
    """Whether a connection without a request is logged."""

    LOG = "Log"
    IGNORE = "Ignore"


class AccessLogging(Part):
    """How requests of clients are logged."""

    destination: Annotated[LoggingDestination, rules(*union_rules(LoggingDestinations))]
    """Where the lines go."""

    http_log_format: str | None = None
    """The format of the line of an HTTP request, in HAProxy's own language; HAProxy's `httplog`
    by default. Its meaning would change with the implementation of the router. A format that
    HAProxy refuses is reported in the condition Admitted, and does not reach the router."""

    http_capture_headers: CaptureHeaders | None = None
    """The headers whose values are in the line."""

    http_capture_cookies: Annotated[
        tuple[Annotated[CaptureCookie, rules(*_NAMED_COOKIE)], ...] | None,
        NULLABLE,
        items(max_items=1),
    ] = None
    """The cookie whose value is in the line; at most one."""

    log_empty_requests: Annotated[
        str | None, one_of(EmptyRequests), default(EmptyRequests.LOG.value)
    ] = None
    """Whether a connection without a request is logged, as health checks of load balancers and
    port scans make them."""


class IngressControllerLogging(Part):
    """What is logged, and where to. Each field is a type of logs; one that is absent is off."""

    access: AccessLogging | None = None
    """How requests of clients are logged. If it is absent, they are not logged."""
