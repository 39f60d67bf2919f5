"""How well an operator is, by what its ClusterOperator says. Pure.

One word for each, and in which order the words are worse. What stands there may be the staleness
checker's: its texts are taken off the messages, and an operator that it has given up is stale.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.status.staleness_marks import (
    is_checking,
    is_verdict,
    original,
    recorded_silence,
    recorded_status,
)

CHECKED = ("Available", "Progressing", "Degraded", "Upgradeable")
"""The conditions that the staleness checker looks at."""


class State(StrEnum):
    """How well an operator is; the worst first."""

    UNAVAILABLE = "unavailable"
    STALE = "stale"
    DEGRADED = "degraded"
    UNKNOWN = "unknown"
    PROGRESSING = "progressing"
    WELL = "well"
    DISABLED = "disabled"


ORDER = tuple(State)
UNWELL = frozenset({State.UNAVAILABLE, State.STALE, State.DEGRADED, State.UNKNOWN})
"""The states in which somebody has to look."""


class Mark(StrEnum):
    """What the staleness checker has put on a condition."""

    CHECKING = "checking"
    STALE = "stale"


class SeenCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A condition as people should read it."""

    type: str
    status: str
    last_known: str
    """The status that the operator itself gave; that of a verdict's record, else the status."""
    reason: str
    message: str
    """The operator's own, without what the checker put before it."""
    since: datetime | None
    mark: Mark | None = None
    silence: str | None = None
    """For how long nobody had answered at the verdict: `20 minutes`."""


class Health(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a ClusterOperator says, judged."""

    name: str
    state: State
    checking: bool
    """Whether the checker waits for an answer."""
    versions: dict[str, str]
    conditions: tuple[SeenCondition, ...]
    related_objects: tuple[Object, ...] = ()

    def condition(self, type_: str) -> SeenCondition | None:
        """The condition of that type."""
        return next((one for one in self.conditions if one.type == type_), None)

    def status(self, type_: str) -> str:
        """The status of that condition; empty without one."""
        found = self.condition(type_)
        return found.status if found else ""

    @property
    def telling(self) -> SeenCondition | None:
        """The condition that says most about the state."""
        wanted = _TELLING.get(self.state, ("Available",))
        return next((one for type_ in wanted if (one := self.condition(type_))), None)


_TELLING = {
    State.DEGRADED: ("Degraded",),
    State.PROGRESSING: ("Progressing",),
    State.DISABLED: ("Disabled",),
    State.STALE: CHECKED,
}


def health_of(cluster_operator: Object) -> Health:
    """What is to be made of a ClusterOperator; one that says nothing is unknown."""
    status = cluster_operator.get("status") or {}
    conditions = tuple(_seen(one) for one in status.get("conditions") or ())
    return Health(
        name=cluster_operator["metadata"]["name"],
        state=_state({one.type: one for one in conditions}),
        checking=any(one.mark is Mark.CHECKING for one in conditions),
        versions={one["name"]: one["version"] for one in status.get("versions") or ()},
        conditions=conditions,
        related_objects=tuple(status.get("relatedObjects") or ()),
    )


def worst_first(operators: Iterable[Health]) -> list[Health]:
    """The operators, those first that need somebody most; by name where they are alike."""
    return sorted(operators, key=lambda one: (ORDER.index(one.state), one.name))


def _state(conditions: dict[str, SeenCondition]) -> State:
    checked = [conditions[type_] for type_ in CHECKED if type_ in conditions]
    statuses = {type_: one.status for type_, one in conditions.items()}
    if statuses.get("Available") == "False":
        return State.UNAVAILABLE
    if checked and all(one.mark is Mark.STALE for one in checked):
        return State.STALE
    if statuses.get("Degraded") == "True":
        return State.DEGRADED
    if statuses.get("Available") != "True" or statuses.get("Degraded") != "False":
        return State.UNKNOWN
    if statuses.get("Disabled") == "True":
        return State.DISABLED
    return State.PROGRESSING if statuses.get("Progressing") == "True" else State.WELL


def _seen(condition: Object) -> SeenCondition:
    type_, status = str(condition.get("type", "")), str(condition.get("status", ""))
    message = str(condition.get("message") or "")
    mark = _mark(type_, status, message)
    return SeenCondition(
        type=type_,
        status=status,
        last_known=(recorded_status(message) if mark is Mark.STALE else None) or status,
        reason=str(condition.get("reason") or ""),
        message=original(message) if mark else message,
        since=_time(condition.get("lastTransitionTime")),
        mark=mark,
        silence=recorded_silence(message) if mark is Mark.STALE else None,
    )


def _mark(type_: str, status: str, message: str) -> Mark | None:
    if type_ not in CHECKED:
        return None
    if is_checking(message):
        return Mark.CHECKING
    return Mark.STALE if is_verdict(status, message) else None


def _time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
