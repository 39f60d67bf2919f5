"""The format of access lines, as the user typed it."""

from quarterdeck.operators.ingress.logging.additions import AdditionContext, Additions


def additions(log_format: str, _context: AdditionContext) -> Additions:
    """The router's variable; an empty format is HAProxy's own."""
    if not log_format:
        return Additions()
    return Additions(environment={"ROUTER_SYSLOG_FORMAT": log_format})
