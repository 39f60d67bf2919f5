"""A model of what the API server does to one ClusterOperator's conditions and managedFields.

It knows ordinary updates of the status by several managers, with and without an atomic list, and
the server's refusal of an old resourceVersion. `test_staleness_model.py` in the integration tests
plays the same writes to it and to a real API server.
"""

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from quarterdeck.api.meta import Object

START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
TYPES = ("Degraded", "Available", "Progressing", "Upgradeable")
OPERATOR = "their-operator"
CHECKER = "quarterdeck-staleness"


def stamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(
    type_: str, status: str = "True", message: str = "all is well", since: datetime = START
) -> Object:
    return {
        "type": type_,
        "status": status,
        "reason": "AsExpected",
        "message": message,
        "lastTransitionTime": stamp(since),
    }


class Stale(Exception):  # noqa: N818 - the server's Conflict
    """The write carried an old resourceVersion."""


class ModelServer:
    """One ClusterOperator; time is set from outside."""

    def __init__(self, conditions: list[Object], *, atomic: bool = False, now: datetime = START):
        self.now = now
        self.atomic = atomic
        self.version = 1
        self.created = now
        self.conditions: list[Object] = []
        self._owned: dict[str, set[tuple[str, str]]] = {}
        self._times: dict[str, datetime] = {}
        self.update(OPERATOR, conditions)

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def update(self, manager: str, conditions: list[Object], version: int | None = None) -> bool:
        """Replace the conditions as this manager; whether that changed anything."""
        if version is not None and version != self.version:
            raise Stale
        before, after = _leaves(self.conditions), _leaves(conditions)
        if self.conditions == conditions:
            return False
        if self.atomic:
            changed, gone = {("", "")}, set()
        else:
            changed = {leaf for leaf, value in after.items() if before.get(leaf, ...) != value}
            gone = before.keys() - after.keys()
        for other in list(self._owned):
            self._owned[other] -= changed | gone
        self._owned.setdefault(manager, set()).update(changed)
        if changed:
            self._times[manager] = self.now
        self._owned = {name: owned for name, owned in self._owned.items() if owned}
        self.conditions = copy.deepcopy(conditions)
        self.version += 1
        return True

    def get(self, *, managed_fields: bool = True, **metadata: Any) -> Object:
        """The object as the server would send it."""
        meta: Object = {
            "name": "it",
            "uid": "1",
            "resourceVersion": str(self.version),
            "creationTimestamp": stamp(self.created),
        }
        if managed_fields:
            meta["managedFields"] = [
                {
                    "manager": manager,
                    "operation": "Update",
                    "subresource": "status",
                    "time": stamp(self._times[manager]),
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:status": {"f:conditions": _tree(owned)}},
                }
                for manager, owned in sorted(self._owned.items())
            ]
        return {
            "apiVersion": "config.openshift.io/v1",
            "kind": "ClusterOperator",
            "metadata": {**meta, **metadata},
            "status": {"conditions": copy.deepcopy(self.conditions)},
        }

    def condition(self, type_: str) -> Object:
        return next(one for one in self.conditions if one["type"] == type_)


def changed(conditions: list[Object], type_: str, **fields: str) -> list[Object]:
    """The conditions with some fields of one of them set."""
    return [one | fields if one["type"] == type_ else one for one in conditions]


def _leaves(conditions: list[Object]) -> dict[tuple[str, str], Any]:
    return {
        (one["type"], field): value
        for one in conditions
        for field, value in (*one.items(), (".", None))
    }


def _tree(owned: set[tuple[str, str]]) -> Object:
    if owned == {("", "")}:
        return {}
    tree: dict[str, Object] = {}
    for type_, field in sorted(owned):
        key = "k:" + json.dumps({"type": type_}, separators=(",", ":"))
        tree.setdefault(key, {})["." if field == "." else f"f:{field}"] = {}
    return tree
