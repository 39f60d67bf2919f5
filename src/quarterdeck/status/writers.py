"""Who has written a ClusterOperator's conditions, and when, by `metadata.managedFields`. Pure.

Each entry says, stamped by the API server, when a manager last changed fields that it owns. Objects
may be odd; what cannot be read counts as not there.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.status.staleness import CHECKED, parse_time, said_in
from quarterdeck.status.staleness_marks import is_marked

CHECKER = "quarterdeck-staleness"
PROBE = "quarterdeck-staleness-probe"
ANCIENT = "ancient-changes"
"""The API server's name for all managers beyond the tenth, whose time moves with any change."""


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One manager's last change, from its managedFields entry."""

    manager: str
    operation: str
    time: datetime | None
    conditions: frozenset[str]
    """The types of the conditions of which it owns anything."""
    messages: frozenset[str]
    """The types of the conditions whose message it owns."""
    whole: bool
    """It owns the whole list, which the resource's definition has made atomic."""

    @property
    def asks(self) -> bool:
        """Whether it is a challenge: the checker's, or a probe's."""
        return self.manager in (CHECKER, PROBE)

    def owns_message(self, type_: str) -> bool:
        """Whether it owns the message of the condition of that type."""
        return self.whole or type_ in self.messages

    def by_probe(self, type_: str) -> bool:
        """Whether a probe has put the message of that condition there."""
        return self.manager == PROBE and self.owns_message(type_)

    @property
    def by_operator(self) -> bool:
        """Whether only a live operator writes so."""
        return (
            not self.asks
            and self.manager != ANCIENT
            and (self.whole or not self.conditions.isdisjoint(CHECKED))
        )

    def proves_life(self, now: datetime) -> bool:
        """Whether a live operator has written by then; a time in the future says nothing."""
        return self.by_operator and self.time is not None and self.time <= now


def writes_of(obj: Object) -> Iterator[Write]:
    """The managers that own anything under `status.conditions`."""
    metadata = obj.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, dict) else None
    trees = [
        (entry, owned)
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(owned := _at(entry, "fieldsV1", "f:status", "f:conditions"), dict)
    ]
    # Who once wrote an empty list has the same entry as who owns an atomic one.
    atomic = not any(key.startswith("k:") for _, owned in trees for key in owned)
    for entry, owned in trees:
        manager, operation = entry.get("manager"), entry.get("operation")
        fields = dict(_by_type(owned))
        yield Write(
            manager=manager if isinstance(manager, str) else "",
            operation=operation if isinstance(operation, str) else "",
            time=parse_time(entry.get("time")),
            conditions=frozenset(fields),
            messages=frozenset(
                type_ for type_, of in fields.items() if not of or "f:message" in of
            ),
            whole=atomic and not owned,
        )


def cannot_answer(obj: Object) -> bool:
    """Whether the operator has no way to put a message back.

    So it is with one that applies its conditions without messages: what it applies has not
    changed, so the API server changes nothing, and our text stays. An atomic list is compared as
    a whole, and there it can. While a text of ours stands nobody knows: it took the message's
    owner away.
    """
    status = obj.get("status")
    found = status.get("conditions") if isinstance(status, dict) else None
    entries = [one for one in (found if isinstance(found, list) else ()) if isinstance(one, dict)]
    said = [one for one in said_in(entries) if one.type in CHECKED]
    if any(is_marked(one.status, one.message) for one in said):
        return False
    types = {one.type for one in said}
    theirs = [write for write in writes_of(obj) if not write.asks]
    return bool(types) and all(_applied_without_message(type_, theirs) for type_ in types)


def _applied_without_message(type_: str, writes: list[Write]) -> bool:
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
