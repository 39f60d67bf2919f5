"""Joins the conditions of an operator's parts into one condition of its ClusterOperator.

`RouterDegraded` and `CertificateDegraded` become `Degraded`. A part counts as degraded only after a
time, its *inertia*; other types have no inertia. Pure.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from quarterdeck.api.conditions import Condition
from quarterdeck.api.config_v1 import ClusterStatusCondition

EXPECTED = {"Available": "True", "Upgradeable": "True", "Degraded": "False", "Progressing": "False"}
"""The status of each type in a healthy operator."""

_OPPOSITE = {"True": "False", "False": "True"}


PartCondition = Condition | ClusterStatusCondition
"""A condition of a part: the standard one, or ClusterOperator's older one."""


class Inertia(msgspec.Struct, frozen=True, kw_only=True):
    """How long a part must be degraded before the operator is."""

    default: timedelta = timedelta(minutes=2)
    by_type: Mapping[str, timedelta] = {}
    """For parts with another inertia: `{"RouterDegraded": ...}`."""

    def of(self, part: PartCondition) -> timedelta:
        """The inertia of one part."""
        return self.by_type.get(part.type, self.default)


DEFAULT_INERTIA = Inertia()


def union_condition(
    type_: str,
    conditions: Iterable[PartCondition],
    now: datetime,
    inertia: Inertia = DEFAULT_INERTIA,
) -> ClusterStatusCondition:
    """The operator's condition of this type, from the parts whose types end in it."""
    parts = _parts(type_, conditions)
    if not parts:
        return _condition(type_, "Unknown", "NoData", "", now)
    bad = _bad(type_, parts)
    if not any(_counts(type_, part, now, inertia) for part in bad):
        return _condition(type_, EXPECTED[type_], "AsExpected", _message(parts), _latest(parts))
    # Once one part counts, all bad parts are reported.
    opposite = _OPPOSITE[EXPECTED[type_]]
    status = opposite if any(part.status == opposite for part in bad) else "Unknown"
    return _condition(type_, status, _reason(type_, bad), _message(bad), _latest(bad))


def inertia_ends(
    conditions: Iterable[PartCondition], now: datetime, inertia: Inertia = DEFAULT_INERTIA
) -> datetime | None:
    """When Degraded changes although no part does; None if it does not."""
    bad = _bad("Degraded", _parts("Degraded", conditions))
    if not bad or any(_counts("Degraded", part, now, inertia) for part in bad):
        return None
    # One second more: a part must be bad for longer than its inertia.
    return min(part.last_transition_time + inertia.of(part) for part in bad) + timedelta(seconds=1)


def _parts(type_: str, conditions: Iterable[PartCondition]) -> list[PartCondition]:
    return sorted((one for one in conditions if one.type.endswith(type_)), key=lambda one: one.type)


def _bad(type_: str, parts: Iterable[PartCondition]) -> list[PartCondition]:
    return [part for part in parts if part.status != EXPECTED[type_]]


def _counts(type_: str, part: PartCondition, now: datetime, inertia: Inertia) -> bool:
    """Whether a part has been bad for longer than its inertia."""
    return type_ != "Degraded" or now - part.last_transition_time > inertia.of(part)


def _reason(type_: str, bad: Iterable[PartCondition]) -> str:
    reasons = ((part.type.removesuffix(type_), part.reason) for part in bad)
    # A part without a reason is reported by its name alone.
    return "::".join(sorted("_".join(word for word in pair if word) for pair in reasons))


def _message(parts: Iterable[PartCondition]) -> str:
    """Each line of the messages with the type of its part before it; a repeated line once."""
    lines: dict[str, str] = {}
    for part in parts:
        for line in part.message.split("\n") if part.message else ():
            lines.setdefault(line, f"{part.type}: {line}")
    return "\n".join(lines.values())


def _latest(parts: Iterable[PartCondition]) -> datetime:
    return max(part.last_transition_time for part in parts)


def _condition(
    type_: str, status: str, reason: str, message: str, since: datetime
) -> ClusterStatusCondition:
    return ClusterStatusCondition(
        type=type_, status=status, reason=reason, message=message, last_transition_time=since
    )
