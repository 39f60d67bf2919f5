"""Whether connections without a request are logged."""

from quarterdeck.api.operator_v1 import EmptyRequests
from quarterdeck.operators.ingress.logging.additions import AdditionContext, Additions


def additions(choice: str, _context: AdditionContext) -> Additions:
    """The router's variable, only if they are ignored."""
    if choice != EmptyRequests.IGNORE:
        return Additions()
    return Additions(environment={"ROUTER_DONT_LOG_NULL": "true"})
