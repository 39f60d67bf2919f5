"""What an operator says about itself, and the ClusterOperator status that this makes. Pure.

The operator says how it is *now*. Since when is worked out here, from the status that is there.
Conditions, versions and related objects of which a report does not speak are somebody else's, or
of another time, and stay.
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
"""The transition time of a condition that the reporter has yet to date."""

TOLD = 5
"""How many troubles are told one by one."""


class _Status(Protocol):
    @property
    def conditions(self) -> tuple[Condition, ...]: ...


class _Conditioned(Protocol):
    """An object of a kind of ours that has conditions."""

    @property
    def metadata(self) -> ObjectMeta: ...

    @property
    def status(self) -> _Status: ...


class Retired(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator said in the past, itself or an older release of it, and says no more."""

    conditions: tuple[str, ...] = ()
    """By type."""
    versions: tuple[str, ...] = ()
    """By name."""
    related_objects: tuple[ObjectReference, ...] = ()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """How an operator is now."""

    conditions: tuple[ClusterStatusCondition, ...]
    """Their transition times do not matter: the reporter dates them."""
    runs_release: bool = False
    """Whether all that the operator runs has arrived at the release's version. While it has not,
    the version that is reported stays."""
    versions: tuple[OperandVersion, ...] = ()
    """What else runs, in which version."""
    related_objects: tuple[ObjectReference, ...] = ()
    """What to look at when something is wrong; the reporter adds the operator's own namespace and
    Lease."""
    retired: Retired = Retired()
    look_again: datetime | None = None
    """When the operator would say something else though nothing has happened."""


def condition(
    type_: str, holds: bool | None, reason: str = "AsExpected", message: str = ""
) -> ClusterStatusCondition:
    """A condition as it is now; None for one of which nobody knows."""
    status = "Unknown" if holds is None else str(holds)
    return ClusterStatusCondition(
        type=type_, status=status, reason=reason, message=message, last_transition_time=UNDATED
    )


def degraded(reason: str, troubles: Sequence[str]) -> ClusterStatusCondition:
    """Degraded, with the troubles line by line, the first few of them; not so without any."""
    if not troubles:
        return condition("Degraded", False)
    told = sorted(troubles)
    more = [f"and {len(told) - TOLD} more"] if len(told) > TOLD else []
    return condition("Degraded", True, reason, "\n".join([*told[:TOLD], *more]))


def failing(objects: Iterable[_Conditioned], type_: str) -> list[str]:
    """The objects whose condition of this type is False, each with its message, as troubles."""
    told = ((one, find_condition(one.status.conditions, type_)) for one in objects)
    return [
        f"{Key(one.metadata.namespace, one.metadata.name)}: {found.message}"
        for one, found in told
        if found is not None and found.status == "False"
    ]


def healthy(*but: ClusterStatusCondition) -> tuple[ClusterStatusCondition, ...]:
    """The four conditions of an operator that is well, but for these."""
    well = (
        condition("Available", True),
        condition("Progressing", False),
        condition("Degraded", False),
        condition("Upgradeable", True),
    )
    return merged(well, but, lambda one: one.type)


def all_of(resource: Resource[Any], namespace: str | None = None) -> ObjectReference:
    """All objects of a kind, in one namespace or everywhere, as related objects."""
    return ObjectReference(
        group=resource.group, resource=resource.plural, namespace=namespace, name=""
    )


def desired_status(current: Object, report: Report, now: datetime) -> Object:
    """The status as the report wants it; plain data, so that others' entries survive unread."""
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
    """The condition as it goes over the wire; its time moves only when its status does."""
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
