"""Who owns what after a probe: as before it, to the letter."""

import copy
from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.operators.staleness.give_back import given_back
from quarterdeck.status.writers import PROBE

KEY = 'k:{"type":"Available"}'


def entry(manager: str, status: Any) -> Object:
    return {
        "manager": manager,
        "operation": "Update",
        "subresource": "status",
        "time": "2026-01-01T00:00:00Z",
        "fieldsV1": {"f:status": status},
    }


def with_entries(*entries: Object) -> Object:
    return {"metadata": {"name": "it", "managedFields": copy.deepcopy(list(entries))}}


@pytest.mark.parametrize(
    ("had", "left", "taken"),
    [
        pytest.param(
            {".": {}, "f:conditions": {}},
            {},
            {"f:conditions": {}},
            id="an atomic list, and the status itself",
        ),
        pytest.param(
            {".": {}, "f:conditions": {}, "f:versions": {}},
            {".": {}, "f:versions": {}},
            {"f:conditions": {}},
            id="an atomic list, and more",
        ),
        pytest.param(
            {"f:conditions": {KEY: {".": {}, "f:message": {}}}},
            {"f:conditions": {KEY: {}}},
            {"f:conditions": {KEY: {"f:message": {}}}},
            id="a condition itself and its message",
        ),
        pytest.param(
            {"f:conditions": {".": {}, KEY: {"f:message": {}}}},
            {"f:conditions": {}},
            {"f:conditions": {KEY: {"f:message": {}}}},
            id="the list itself and a message",
        ),
        pytest.param(
            {"f:conditions": {KEY: {"f:message": {}, "f:status": {}}}},
            {"f:conditions": {KEY: {"f:status": {}}}},
            {"f:conditions": {KEY: {"f:message": {}}}},
            id="a message among others",
        ),
    ],
)
def test_an_owner_gets_back_what_the_probe_took(had: Object, left: Object, taken: Object) -> None:
    """A field that is owned itself stays so when something below it is owned again."""
    before = with_entries(entry("it", had))
    after = with_entries(entry("it", left), entry(PROBE, taken))
    assert given_back(after, before) == before["metadata"]["managedFields"]


def test_an_owner_with_nothing_left_gets_its_entry_back() -> None:
    had: Object = {"f:conditions": {KEY: {"f:message": {}}}}
    before = with_entries(entry("it", had))
    after = with_entries(entry(PROBE, had))
    assert given_back(after, before) == before["metadata"]["managedFields"]
