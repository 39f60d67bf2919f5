"""Access logs: the router logs the requests of clients."""

from quarterdeck.api.operator_v1 import AccessLogging
from quarterdeck.operators.ingress.logging.additions import (
    AdditionContext,
    Additions,
    additions_of_fields,
    joined,
)

# At HAProxy's own level, `warning`, no access line is written (measured on HAProxy 2.6).
_LEVEL = Additions(environment={"ROUTER_LOG_LEVEL": "info"})


def additions(access: AccessLogging, context: AdditionContext) -> Additions:
    """The level at which HAProxy logs requests, and what the parameters add."""
    return joined([_LEVEL, additions_of_fields(__name__, access, context)])
