"""The log levels, their verbosity, and the level that an object asks for. Pure."""

from typing import Any

from quarterdeck import log as logs
from quarterdeck.api.meta import Object

NORMAL = "Normal"
LEVELS = {
    NORMAL: logs.NORMAL,
    "Debug": logs.DEBUG,
    "Trace": logs.TRACE,
    "TraceAll": logs.TRACE_ALL,
}
"""Level to klog's verbosity, from least to most."""

CONFIG_NAME = "cluster"
"""The ClusterVersionOperator that counts."""


def asked_level(config: Object) -> Any:
    """The value of operatorLogLevel, of any type; unset and empty are Normal.

    The value may be invalid: the schema may be older, newer or gone.
    """
    spec = config.get("spec")
    if spec is None:
        return NORMAL
    if not isinstance(spec, dict):
        return spec
    level = spec.get("operatorLogLevel")
    return NORMAL if level is None or level == "" else level


def known_level(asked: Any) -> str | None:
    """The level; None if the value is not a level."""
    return asked if isinstance(asked, str) and asked in LEVELS else None


def unknown_level(asked: Any) -> str:
    """The message about a value that is not a level: field, value, remedy."""
    return (
        f"spec.operatorLogLevel: {str(asked)[:100]!r} is not a log level, so it is Normal; "
        f"choose one of {', '.join(LEVELS)}"
    )
