"""An operator's report, and the status of its ClusterOperator that follows. Pure.

The operator reports its state *now*; the transition times follow from the current status.
Conditions, versions and related objects that are not in the report belong to other writers or to an
older release, and stay.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from quarterdeck.api.conditions import Condition
from quarterdeck.api.config_v1 import ClusterStatusCondition, ObjectReference, OperandVersion
from quarterdeck.api.meta import Key, Object, ObjectMeta, Resource
from quarterdeck.status.conditions import find_condition
from quarterdeck.status.entries import merged

UNDATED = datetime(1, 1, 1, tzinfo=UTC)
"""The transition time of a condition until the reporter sets it."""

LISTED_MESSAGES = 5
"""The most messages that the condition Degraded lists."""


class _StatusWithConditions(Protocol):
    @property
    def conditions(self) -> tuple[Condition, ...]: ...


class _Conditioned(Protocol):
    """An object of one of our kinds, with conditions."""

    @property
    def metadata(self) -> ObjectMeta: ...

    @property
    def status(self) -> _StatusWithConditions: ...


class Retired(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that the operator, or an older release of it, wrote and that have to be removed."""

    conditions: tuple[str, ...] = ()
    """By type."""
    versions: tuple[str, ...] = ()
    """By name."""
    related_objects: tuple[ObjectReference, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's state now."""

    conditions: tuple[ClusterStatusCondition, ...]
    """Their transition times do not matter: the reporter sets them."""
    at_release_version: bool = False
    """Whether everything that the operator runs has reached the version of its release. While it is
    False, the reported version stays the old one."""
    versions: tuple[OperandVersion, ...] = ()
    """The versions of other operands."""
    related_objects: tuple[ObjectReference, ...] = ()
    """The objects to look at if something is wrong; the reporter adds the operator's own namespace
    and Lease."""
    retired: Retired = Retired()
    valid_until: datetime | None = None
    """When the report changes although no object changes."""


def condition(
    type_: str, holds: bool | None, reason: str = "AsExpected", message: str = ""
) -> ClusterStatusCondition:
    """A condition with the status that `holds` gives; None is Unknown."""
    status = "Unknown" if holds is None else str(holds)
    return ClusterStatusCondition(
        type=type_, status=status, reason=reason, message=message, last_transition_time=UNDATED
    )


def degraded(reason: str, messages: Sequence[str]) -> ClusterStatusCondition:
    """The condition Degraded: True with the first messages, one per line; False without any."""
    if not messages:
        return condition("Degraded", False)
    listed = sorted(messages)
    more = [f"and {len(listed) - LISTED_MESSAGES} more"] if len(listed) > LISTED_MESSAGES else []
    return condition(
        "Degraded",
        True,
        reason,
        "\n".join([*listed[:LISTED_MESSAGES], *more]),
    )


def failing(objects: Iterable[_Conditioned], type_: str) -> list[str]:
    """A line for each object whose condition of this type is False: its key and the message."""
    conditions = ((one, find_condition(one.status.conditions, type_)) for one in objects)
    return [
        f"{Key(one.metadata.namespace, one.metadata.name)}: {found.message}"
        for one, found in conditions
        if found is not None and found.status == "False"
    ]


def standard_conditions(*changed: ClusterStatusCondition) -> tuple[ClusterStatusCondition, ...]:
    """The four conditions of a healthy operator; each one passed replaces the one of its type."""
    healthy = (
        condition("Available", True),
        condition("Progressing", False),
        condition("Degraded", False),
        condition("Upgradeable", True),
    )
    return merged(healthy, changed, lambda one: one.type)


def all_of(resource: Resource[Any], namespace: str | None = None) -> ObjectReference:
    """A related object that stands for all objects of a kind, in one namespace or in all."""
    return ObjectReference(
        group=resource.group, resource=resource.plural, namespace=namespace, name=""
    )


def desired_status(current: Object, report: Report, now: datetime) -> Object:
    """The status with the report merged into it; entries of others keep unknown fields."""
    retired = report.retired
    status = dict(current)
    was = _entries(current, "conditions")
    conditions = [_dated(was, one, now) for one in report.conditions]
    status["conditions"] = _merge(was, conditions, _type, retired.conditions)
    status["versions"] = _merge(
        _entries(current, "versions"), _plain(report.versions), _name, retired.versions
    )
    status["relatedObjects"] = _merge(
        _entries(current, "relatedObjects"),
        _plain(report.related_objects),
        _reference,
        map(_reference, _plain(retired.related_objects)),
    )
    return {key: value for key, value in status.items() if value or key in current}


def _dated(was: list[Object], new: ClusterStatusCondition, now: datetime) -> Object:
    """The condition as plain data; its transition time changes only with its status."""
    old = next((one for one in was if one.get("type") == new.type), {})
    entry: Object = msgspec.to_builtins(new)
    if old.get("status") == new.status and old.get("lastTransitionTime"):
        return {**entry, "lastTransitionTime": old["lastTransitionTime"]}
    # The API's times have whole seconds; a finer one would never compare equal.
    return {**entry, "lastTransitionTime": msgspec.to_builtins(now.replace(microsecond=0))}


def _merge(
    old: list[Object],
    new: Iterable[Object],
    key: Callable[[Object], Hashable],
    gone: Iterable[Hashable],
) -> list[Object]:
    return list(merged(old, new, key, gone))


def _entries(status: Object, field: str) -> list[Object]:
    return list(status.get(field) or ())


def _plain(entries: Iterable[msgspec.Struct]) -> list[Object]:
    return [msgspec.to_builtins(entry) for entry in entries]


def _type(entry: Object) -> Hashable:
    return entry.get("type")


def _name(entry: Object) -> Hashable:
    return entry.get("name")


def _reference(entry: Object) -> Hashable:
    return tuple(entry.get(field) or "" for field in ("group", "resource", "namespace", "name"))
