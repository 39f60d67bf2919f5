"""What `spec.logging` adds to a router's pod. Pure.

The packages below mirror the fields of the API: the module of a field has the field's name, and a
function `additions(value, context)`. So a new type of logs, a new destination or a new parameter is
a field of the API and a module here:

    logging/access/                    spec.logging.access
    logging/access/http_log_format.py  spec.logging.access.httpLogFormat
    logging/access/destination/syslog.py
"""

from quarterdeck.api.operator_v1 import IngressControllerLogging
from quarterdeck.operators.ingress.logging.additions import (
    AdditionContext,
    Additions,
    additions_of_fields,
)


def additions(logging: IngressControllerLogging | None, context: AdditionContext) -> Additions:
    """What all types of logs that are on add to the pod."""
    return additions_of_fields(__name__, logging, context) if logging else Additions()
