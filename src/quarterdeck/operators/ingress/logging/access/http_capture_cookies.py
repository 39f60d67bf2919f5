"""The cookie whose value is in access lines."""

from quarterdeck.api.operator_v1 import CaptureCookie, CookieMatchType
from quarterdeck.operators.ingress.logging.additions import AdditionContext, Additions

DEFAULT_LENGTH = 256


def additions(cookies: tuple[CaptureCookie, ...], _context: AdditionContext) -> Additions:
    """The router's variable; HAProxy captures one cookie."""
    if not cookies:
        return Additions()
    return Additions(environment={"ROUTER_CAPTURE_HTTP_COOKIE": cookie_capture(cookies[0])})


def cookie_capture(cookie: CaptureCookie) -> str:
    """`name=:length` for exactly this cookie, `prefix:length` for a prefix of its name."""
    exact = cookie.match_type == CookieMatchType.EXACT
    name = f"{cookie.name or ''}=" if exact else cookie.name_prefix or ""
    return f"{name}:{cookie.max_length or DEFAULT_LENGTH}"
