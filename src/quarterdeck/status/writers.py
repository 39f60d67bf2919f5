"""Which field managers wrote a ClusterOperator's conditions, and when. Pure.

Each entry of `metadata.managedFields` has the time at which a manager last changed fields that it
owns; the API server sets it. What cannot be read in an object counts as missing.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.times import parse_time
from quarterdeck.status.staleness import CHECKED, plain_conditions
from quarterdeck.status.staleness_marks import is_marked

CHECKER = "quarterdeck-staleness"
PROBE = "quarterdeck-staleness-probe"
CHECKER_SETTINGS = Key("kube-system", "quarterdeck-staleness")
"""The ConfigMap in which the checkers publish their settings."""
ANCIENT = "ancient-changes"
"""The API server's name for all managers beyond the tenth; its time changes with any change."""


class ManagerWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One manager's last change, from its managedFields entry."""

    manager: str
    operation: str
    time: datetime | None
    conditions: frozenset[str]
    """The types of the conditions of which it owns a field."""
    messages: frozenset[str]
    """The types of the conditions whose message it owns."""
    whole: bool
    """Whether it owns the whole list, which is atomic in the resource's definition."""

    @property
    def by_checker(self) -> bool:
        """Whether the checker or a probe wrote."""
        return self.manager in (CHECKER, PROBE)

    def owns_message(self, type_: str) -> bool:
        """Whether it owns the message of the condition of that type."""
        return self.whole or type_ in self.messages

    def by_probe(self, type_: str) -> bool:
        """Whether a probe wrote the message of that condition."""
        return self.manager == PROBE and self.owns_message(type_)

    @property
    def by_operator(self) -> bool:
        """Whether an operator wrote."""
        return (
            not self.by_checker
            and self.manager != ANCIENT
            and (self.whole or not self.conditions.isdisjoint(CHECKED))
        )

    def proves_life(self, now: datetime) -> bool:
        """Whether an operator wrote at a known time that is not in the future."""
        return self.by_operator and self.time is not None and self.time <= now


def condition_writes(obj: Object) -> Iterator[ManagerWrite]:
    """The last write of each manager that owns a field under `status.conditions`."""
    metadata = obj.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    trees = [
        (entry, owned)
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(owned := _at(entry, "fieldsV1", "f:status", "f:conditions"), dict)
    ]
    # A manager that once wrote an empty list has the same entry as the owner of an atomic list.
    atomic = not any(key.startswith("k:") for _, owned in trees for key in owned)
    for entry, owned in trees:
        manager, operation = entry.get("manager"), entry.get("operation")
        fields = dict(_by_type(owned))
        yield ManagerWrite(
            manager=manager if isinstance(manager, str) else "",
            operation=operation if isinstance(operation, str) else "",
            time=parse_time(entry.get("time")),
            conditions=frozenset(fields),
            messages=frozenset(
                type_ for type_, of in fields.items() if not of or "f:message" in of
            ),
            whole=atomic and not owned,
        )


def last_writes(obj: Object) -> dict[str, ManagerWrite]:
    """For each type of condition the last write by a manager that owns a field of it.

    The time is that of the manager's last change of any field that it owns.
    """
    found: dict[str, ManagerWrite] = {}
    status = obj.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    entries = conditions if isinstance(conditions, list) else []
    types = [str(one.get("type")) for one in entries if isinstance(one, dict)]
    dated = [(one.time, one) for one in condition_writes(obj) if one.time is not None]
    for _, write in sorted(dated, key=lambda one: one[0]):
        for type_ in types if write.whole else write.conditions:
            found[type_] = write
    return found


def cannot_answer(obj: Object) -> bool:
    """Whether the operator cannot restore a message.

    That is the case if it applies its conditions without messages: the API server sees no
    difference in what it applies, and our text stays. An atomic list is compared as a whole, so
    there it can. While a condition has our text, this is unknown, because we own the message then.
    """
    status = obj.get("status")
    found = status.get("conditions") if isinstance(status, dict) else None
    entries = [one for one in (found if isinstance(found, list) else ()) if isinstance(one, dict)]
    watched = [one for one in plain_conditions(entries) if one.type in CHECKED]
    if any(is_marked(one.status, one.message) for one in watched):
        return False
    types = {one.type for one in watched}
    theirs = [write for write in condition_writes(obj) if not write.by_checker]
    return bool(types) and all(_applied_without_message(type_, theirs) for type_ in types)


def _applied_without_message(type_: str, writes: list[ManagerWrite]) -> bool:
    owners = [write for write in writes if write.whole or type_ in write.conditions]
    return bool(owners) and all(
        write.operation == "Apply" and not write.owns_message(type_) for write in owners
    )


def _by_type(owned: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The condition types in a tree like `{'k:{"type":"Available"}': {"f:message": {}}}`."""
    for key, fields in owned.items():
        if not key.startswith("k:") or not isinstance(fields, dict):
            continue
        try:
            name = json.loads(key[2:])
        except ValueError:
            continue
        if isinstance(name, dict) and isinstance(name.get("type"), str):
            yield name["type"], fields


def _at(value: object, *path: str) -> object:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
