"""The destination of access lines: a union, whose chosen member has a module here."""

from quarterdeck.api.operator_v1 import LoggingDestination
from quarterdeck.operators.ingress.logging.additions import (
    AdditionContext,
    Additions,
    additions_of_field,
)


def additions(destination: LoggingDestination, context: AdditionContext) -> Additions:
    """What the chosen destination adds; its parameters may be absent."""
    member = destination.member
    if not member:
        return Additions()
    return additions_of_field(__name__, member, getattr(destination, member), context)
