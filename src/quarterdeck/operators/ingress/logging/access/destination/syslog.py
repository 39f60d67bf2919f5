"""Access lines to a syslog endpoint over UDP."""

from quarterdeck.api.operator_v1 import SyslogDestination
from quarterdeck.api.operator_v1.access_logging import DEFAULT_MAX_LENGTH
from quarterdeck.operators.ingress.logging.additions import AdditionContext, Additions


def additions(syslog: SyslogDestination, _context: AdditionContext) -> Additions:
    """The endpoint and the most bytes of a message, and the facility if one is set."""
    environment = {
        "ROUTER_SYSLOG_ADDRESS": endpoint(syslog.address, syslog.port),
        "ROUTER_LOG_MAX_LENGTH": str(syslog.max_length or DEFAULT_MAX_LENGTH),
    }
    if syslog.facility:
        environment["ROUTER_LOG_FACILITY"] = syslog.facility
    return Additions(environment=environment)


def endpoint(address: str, port: int) -> str:
    """`address:port`, with an IPv6 address in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
