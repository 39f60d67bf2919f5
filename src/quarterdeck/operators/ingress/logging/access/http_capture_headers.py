"""Headers whose values are in access lines."""

from collections.abc import Iterable

from quarterdeck.api.operator_v1 import CaptureHeader, CaptureHeaders
from quarterdeck.operators.ingress.logging.additions import AdditionContext, Additions


def additions(headers: CaptureHeaders, _context: AdditionContext) -> Additions:
    """A variable for requests and one for responses, if there are such headers."""
    captures = {
        "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS": header_captures(headers.request or ()),
        "ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS": header_captures(headers.response or ()),
    }
    return Additions(environment={name: value for name, value in captures.items() if value})


def header_captures(headers: Iterable[CaptureHeader]) -> str:
    """`Name:length` of each header, with commas; a name is a token and has neither character."""
    return ",".join(f"{header.name}:{header.max_length}" for header in headers)
