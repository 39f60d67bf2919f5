"""The state of an operator, from its ClusterOperator. Pure.

Each operator has one state, and the states have an order. Text of the staleness checker is removed
from the messages; an operator with the checker's verdict is stale.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.status.staleness import (
    CHECKED,
    PlainCondition,
    depends_on_keeping,
    is_stale,
    plain_conditions,
)
from quarterdeck.status.staleness_marks import (
    is_checking,
    is_verdict,
    original,
    recorded_silence,
    recorded_status,
)
from quarterdeck.status.writers import cannot_answer


class OperatorState(StrEnum):
    """The states of an operator, the worst first."""

    UNAVAILABLE = "unavailable"
    STALE = "stale"
    DEGRADED = "degraded"
    UNKNOWN = "unknown"
    PROGRESSING = "progressing"
    WELL = "well"
    DISABLED = "disabled"


ORDER = tuple(OperatorState)
NEED_ATTENTION = frozenset(
    {OperatorState.UNAVAILABLE, OperatorState.STALE, OperatorState.DEGRADED, OperatorState.UNKNOWN}
)
"""The states in which an administrator has to act."""


class ConditionMark(StrEnum):
    """What the text of the staleness checker in a condition means."""

    CHECKING = "checking"
    STALE = "stale"


class SeenCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A condition for people to read, without the text of the staleness checker."""

    type: str
    status: str
    last_known: str
    """The status that the operator itself set, which a verdict records."""
    reason: str
    message: str
    """The operator's own message."""
    since: datetime | None
    mark: ConditionMark | None = None
    silence: str | None = None
    """How long the operator had not answered at the verdict: `20 minutes`."""


class OperatorHealth(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The state of an operator, and its conditions."""

    name: str
    state: OperatorState
    checking: bool
    """Whether the checker waits for the operator's answer."""
    versions: dict[str, str]
    conditions: tuple[SeenCondition, ...]
    related_objects: tuple[Object, ...] = ()
    checkable: bool = True
    """Whether the operator can answer the checker; one that cannot is never stale."""
    depends_on_keeping: bool = False
    """Whether the operator is stale only for a checker that keeps an Upgradeable=False."""

    def condition(self, type_: str) -> SeenCondition | None:
        """The condition of that type."""
        return next((one for one in self.conditions if one.type == type_), None)

    def status(self, type_: str) -> str:
        """The status of the condition of that type; empty if there is none."""
        found = self.condition(type_)
        return found.status if found else ""

    @property
    def decisive_condition(self) -> SeenCondition | None:
        """The condition that decides the state."""
        wanted = _DECISIVE.get(self.state, ("Available",))
        return next((one for type_ in wanted if (one := self.condition(type_))), None)


_DECISIVE = {
    OperatorState.DEGRADED: ("Degraded",),
    OperatorState.PROGRESSING: ("Progressing",),
    OperatorState.DISABLED: ("Disabled",),
    OperatorState.STALE: CHECKED,
}


def health_of(
    cluster_operator: Object, *, keep_upgradeable_false: bool | None = None
) -> OperatorHealth:
    """The health of an operator; without conditions its state is unknown.

    `keep_upgradeable_false` is whether the checker keeps an Upgradeable=False; None if unknown.
    """
    status = cluster_operator.get("status") or {}
    plain = tuple(plain_conditions(status.get("conditions") or ()))
    conditions = tuple(_seen(one) for one in plain)
    stale = is_stale(plain, keep_upgradeable_false=keep_upgradeable_false)
    return OperatorHealth(
        name=cluster_operator["metadata"]["name"],
        state=_state({one.type: one.status for one in plain}, stale=stale),
        checking=any(one.mark is ConditionMark.CHECKING for one in conditions),
        versions={one["name"]: one["version"] for one in status.get("versions") or ()},
        conditions=conditions,
        related_objects=tuple(status.get("relatedObjects") or ()),
        checkable=not cannot_answer(cluster_operator),
        depends_on_keeping=depends_on_keeping(plain),
    )


def worst_first(operators: Iterable[OperatorHealth]) -> list[OperatorHealth]:
    """The operators by state, the worst first, then by name."""
    return sorted(operators, key=lambda one: (ORDER.index(one.state), one.name))


def _state(statuses: dict[str, str], *, stale: bool) -> OperatorState:
    if statuses.get("Available") == "False":
        return OperatorState.UNAVAILABLE
    if stale:
        return OperatorState.STALE
    if statuses.get("Degraded") == "True":
        return OperatorState.DEGRADED
    if statuses.get("Available") != "True" or statuses.get("Degraded") != "False":
        return OperatorState.UNKNOWN
    if statuses.get("Disabled") == "True":
        return OperatorState.DISABLED
    return (
        OperatorState.PROGRESSING if statuses.get("Progressing") == "True" else OperatorState.WELL
    )


def _seen(one: PlainCondition) -> SeenCondition:
    mark = _mark(one.type, one.status, one.message)
    return SeenCondition(
        type=one.type,
        status=one.status,
        last_known=(recorded_status(one.message) if mark is ConditionMark.STALE else None)
        or one.status,
        reason=one.reason,
        message=original(one.message) if mark else one.message,
        since=one.last_transition_time,
        mark=mark,
        silence=recorded_silence(one.message) if mark is ConditionMark.STALE else None,
    )


def _mark(type_: str, status: str, message: str) -> ConditionMark | None:
    if type_ not in CHECKED:
        return None
    if is_checking(message):
        return ConditionMark.CHECKING
    return ConditionMark.STALE if is_verdict(status, message) else None
