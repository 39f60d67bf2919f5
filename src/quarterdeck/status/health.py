"""How well an operator is, by what its ClusterOperator says. Pure.

One word for each, and in which order the words are worse. What stands there may be the staleness
checker's: its texts are taken off the messages, and an operator that it has given up is stale.
"""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.status.staleness import (
    CHECKED,
    SaidCondition,
    depends_on_keeping,
    is_stale,
    said_in,
)
from quarterdeck.status.staleness_marks import (
    is_checking,
    is_verdict,
    original,
    recorded_silence,
    recorded_status,
)
from quarterdeck.status.writers import cannot_answer


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
    checkable: bool = True
    """Whether the operator has a way to answer the checker; one without is never stale."""
    depends_on_keeping: bool = False
    """Whether it is stale only for a checker that keeps an Upgradeable=False."""

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


def health_of(cluster_operator: Object, *, keep_upgradeable_false: bool | None = None) -> Health:
    """What is to be made of a ClusterOperator; one that says nothing is unknown.

    Whether the checker keeps an Upgradeable=False is None where nobody has said so.
    """
    status = cluster_operator.get("status") or {}
    said = tuple(said_in(status.get("conditions") or ()))
    conditions = tuple(_seen(one) for one in said)
    stale = is_stale(said, keep_upgradeable_false=keep_upgradeable_false)
    return Health(
        name=cluster_operator["metadata"]["name"],
        state=_state({one.type: one.status for one in said}, stale=stale),
        checking=any(one.mark is Mark.CHECKING for one in conditions),
        versions={one["name"]: one["version"] for one in status.get("versions") or ()},
        conditions=conditions,
        related_objects=tuple(status.get("relatedObjects") or ()),
        checkable=not cannot_answer(cluster_operator),
        depends_on_keeping=depends_on_keeping(said),
    )


def worst_first(operators: Iterable[Health]) -> list[Health]:
    """The operators, those first that need somebody most; by name where they are alike."""
    return sorted(operators, key=lambda one: (ORDER.index(one.state), one.name))


def _state(statuses: dict[str, str], *, stale: bool) -> State:
    if statuses.get("Available") == "False":
        return State.UNAVAILABLE
    if stale:
        return State.STALE
    if statuses.get("Degraded") == "True":
        return State.DEGRADED
    if statuses.get("Available") != "True" or statuses.get("Degraded") != "False":
        return State.UNKNOWN
    if statuses.get("Disabled") == "True":
        return State.DISABLED
    return State.PROGRESSING if statuses.get("Progressing") == "True" else State.WELL


def _seen(one: SaidCondition) -> SeenCondition:
    mark = _mark(one.type, one.status, one.message)
    return SeenCondition(
        type=one.type,
        status=one.status,
        last_known=(recorded_status(one.message) if mark is Mark.STALE else None) or one.status,
        reason=one.reason,
        message=original(one.message) if mark else one.message,
        since=one.last_transition_time,
        mark=mark,
        silence=recorded_silence(one.message) if mark is Mark.STALE else None,
    )


def _mark(type_: str, status: str, message: str) -> Mark | None:
    if type_ not in CHECKED:
        return None
    if is_checking(message):
        return Mark.CHECKING
    return Mark.STALE if is_verdict(status, message) else None
