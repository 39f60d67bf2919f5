"""The condition of this group's kinds, which is older than the standard one."""

from datetime import datetime
from typing import Annotated

from quarterdeck.api.conditions import TYPE_PATTERN, ConditionStatus
from quarterdeck.api.meta import Part, always
from quarterdeck.api.schema import list_map, one_of, text


class OperatorCondition(Part):
    """One aspect of an object's state: whether it holds, since when, and why."""

    type: Annotated[str, text(max_length=316, pattern=TYPE_PATTERN)]
    """The aspect in CamelCase: `Available`."""

    status: Annotated[str, one_of(ConditionStatus)]
    """Whether the condition holds: True, False, or Unknown."""

    last_transition_time: datetime
    """When the status last changed. A new reason or message alone does not change it."""

    reason: str = always("")
    """The reason of the status, one CamelCase word for programs."""

    message: str = always("")
    """The reason for people, with details."""


OperatorConditions = Annotated[tuple[OperatorCondition, ...], list_map("type")]
"""At most one condition of each type; each can have another owner."""
