"""Restores a ClusterOperator after a probe: its messages, and their ownership. Pure."""

import copy
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.operators.staleness.evidence import (
    StalenessMark,
    conditions_of,
    has_managed_fields,
    raw_conditions,
)
from quarterdeck.status.staleness_marks import original
from quarterdeck.status.writers import PROBE, condition_writes

MESSAGE = "f:message"


def challenged_by_probe(obj: Object) -> set[str]:
    """The types of the conditions that the probe challenged, and not a checker.

    Without managedFields these are all that are challenged.
    """
    challenged = {one.type for one in conditions_of(obj) if one.mark is StalenessMark.CHECKING}
    if not has_managed_fields(obj):
        return challenged
    writes = list(condition_writes(obj))
    return {kind for kind in challenged if any(one.by_probe(kind) for one in writes)}


def restored(obj: Object, before: Object) -> list[Any]:
    """The conditions without the probe's marks; a message that was absent is absent again."""
    conditions, ours = list(raw_conditions(obj)), challenged_by_probe(obj)
    without = {
        one["type"]
        for one in raw_conditions(before)
        if isinstance(one, dict) and "type" in one and "message" not in one
    }
    for one in conditions_of(obj):
        if one.type not in ours or one.mark is not StalenessMark.CHECKING:
            continue
        changed = {**conditions[one.position], "message": original(one.message)}
        if one.type in without and not changed["message"]:
            del changed["message"]
        conditions[one.position] = changed
    return conditions


def given_back(obj: Object, before: Object) -> list[Object] | None:
    """The managedFields with each message owned as before; None if the probe owns none.

    Each entry keeps the time of its manager's own last write.
    """
    entries: list[Object] = copy.deepcopy(obj["metadata"].get("managedFields") or [])
    ours = next((one for one in entries if one.get("manager") == PROBE), None)
    if ours is None:
        return None
    entries.remove(ours)
    owned = _conditions_in(ours)
    for earlier in before["metadata"].get("managedFields") or []:
        if earlier.get("manager") == PROBE:
            continue
        had = _conditions_in(earlier)
        if had is None or owned is None:
            continue
        theirs = _messages(had, owned)
        if theirs is not None:
            _add(entries, earlier, theirs)
    return entries


def _messages(had: Object, owned: Object) -> Object | None:
    """The messages that an earlier owner lost to us; {} is the whole of an atomic list."""
    if not had or not owned:
        return {} if not had and not owned else None
    shared = {
        key: {MESSAGE: fields[MESSAGE]}
        for key, fields in had.items()
        if isinstance(fields, dict) and MESSAGE in fields and MESSAGE in (owned.get(key) or {})
    }
    return shared or None


def _add(entries: list[Object], earlier: Object, theirs: Object) -> None:
    """Add fields to the manager's present entry, or add its earlier entry with them."""
    identity = ("manager", "operation", "subresource")
    for entry in entries:
        if all(entry.get(part) == earlier.get(part) for part in identity):
            status = _inside(entry.setdefault("fieldsV1", {}), "f:status")
            if not theirs:
                status["f:conditions"] = {}
                return
            conditions = _inside(status, "f:conditions")
            for key, fields in theirs.items():
                _inside(conditions, key).update(fields)
            return
    fields = {"f:status": {"f:conditions": theirs}}
    entries.append({**copy.deepcopy(earlier), "fieldsV1": fields})


def _inside(fields: Object, key: str) -> Object:
    """The fields owned below a field, for the caller to extend.

    An empty entry means that the field itself is owned; beside other entries "." means that.
    """
    if fields.get(key) == {}:
        fields[key] = {".": {}}
    found: Object = fields.setdefault(key, {})
    return found


def _conditions_in(entry: Object) -> Object | None:
    status = (entry.get("fieldsV1") or {}).get("f:status")
    found = status.get("f:conditions") if isinstance(status, dict) else None
    return found if isinstance(found, dict) else None
