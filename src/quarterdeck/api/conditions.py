"""The standard condition, as newer kinds report it.

ClusterOperator and ClusterVersion have an older one: see `config_v1.cluster_operator`.
`quarterdeck.status` sets and merges conditions.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from quarterdeck.api.meta import Part
from quarterdeck.api.schema import list_map, number, one_of, text


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
TYPE_PATTERN = rf"^({_LABEL}(\.{_LABEL})*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
_REASON = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class Condition(Part):
    """One aspect of an object's state: whether it holds, since when, and why."""

    type: Annotated[str, text(max_length=316, pattern=TYPE_PATTERN)]
    """The aspect in CamelCase, optionally with a domain: `Ready`, `example.com/Ready`."""

    status: Annotated[str, one_of(ConditionStatus)]
    """Whether the condition holds: True, False, or Unknown."""

    last_transition_time: datetime
    """When the status last changed. A new reason or message alone does not change it."""

    reason: Annotated[str, text(min_length=1, max_length=1024, pattern=_REASON)]
    """The reason of the status, one CamelCase word for programs."""

    message: Annotated[str, text(max_length=32768)]
    """The reason for people, with details; may be empty."""

    observed_generation: Annotated[int | None, number(minimum=0)] = None
    """The `metadata.generation` that the condition is about. If it is below the object's, the
    condition is out of date."""


Conditions = Annotated[tuple[Condition, ...], list_map("type")]
"""At most one condition of each type; each can have another owner."""
