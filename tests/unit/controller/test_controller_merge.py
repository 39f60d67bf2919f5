"""The smallest merge patch between two values."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.controller.merge import has_null_in_list, json_patch, merge_patch

leaves = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"])
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from("abcd"), values)


def without_nulls(value: Any) -> Any:
    """What is left of a value when a merge patch carries it: maps lose their nulls."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return value


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, as the API server does it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@given(old=objects, new=objects)
def test_the_patch_turns_old_into_new(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert without_nulls(merged(old, merge_patch(old, new))) == without_nulls(new)


@given(old=objects, new=objects)
def test_a_patched_value_needs_no_patch(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Also if a null that the patch could not carry is missing in it."""
    assert merge_patch(merged(old, merge_patch(old, new)), new) == {}


@given(same=objects)
def test_equal_values_need_no_patch(same: dict[str, Any]) -> None:
    assert merge_patch(same, dict(same)) == {}


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": 1, "b": 3}, {"b": 3}, id="only what changed"),
        pytest.param({"a": 1, "b": 2}, {"a": 1}, {"b": None}, id="what went is null"),
        pytest.param({"a": [1, 2]}, {"a": [2]}, {"a": [2]}, id="a list is replaced as a whole"),
        pytest.param(
            {"a": {"x": 1, "y": 1}}, {"a": {"x": 1, "y": 2}}, {"a": {"y": 2}}, id="maps merge"
        ),
        pytest.param({"a": {"x": 1}}, {"a": 5}, {"a": 5}, id="a map becomes a number"),
        pytest.param({}, {"a": None}, {}, id="None is the same as nothing"),
    ],
)
def test_the_patch_is_small(
    old: dict[str, Any], new: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert merge_patch(old, new) == patch


def operated(target: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902, as far as it is used."""
    for operation in operations:
        *way, last = operation["path"].removeprefix("/").split("/")
        at = target
        for key in way:
            at = at[key]
        if operation["op"] == "remove":
            del at[last]
        else:
            at[last] = operation["value"]
    return target


@given(old=objects, new=objects)
def test_as_a_json_patch_it_does_the_same(old: dict[str, Any], new: dict[str, Any]) -> None:
    patch = merge_patch(old, new)
    operations = json_patch(old, patch, "/status")
    result = operated({"status": copy.deepcopy(old)}, operations)["status"]
    assert without_nulls(result) == without_nulls(new)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"a": None, "b": [1]}, False, id="a null in a map can be said"),
        pytest.param({"a": [{"b": None}]}, True, id="one in a list cannot"),
        pytest.param({"a": {"b": [[None]]}}, True, id="however deep"),
        pytest.param({"a": ({"b": None},)}, True, id="nor in a tuple, which is a list to the API"),
    ],
)
def test_nulls_in_lists_are_found(value: Any, expected: bool) -> None:
    assert has_null_in_list(value) is expected


def test_a_key_with_a_slash_is_escaped() -> None:
    assert json_patch({}, {"a/b~c": 1}, "/x") == [{"op": "add", "path": "/x/a~1b~0c", "value": 1}]
