"""Rebooking what we created as applied."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.controller.ownership import rebooked

CREATED = {
    "manager": "me",
    "operation": "Update",
    "fieldsV1": {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
}


def test_rebooking_makes_one_applied_entry_of_ours_and_keeps_those_of_others() -> None:
    other = {"manager": "other", "operation": "Update", "fieldsV1": {"f:data": {"f:z": {}}}}
    status = {"manager": "me", "operation": "Update", "subresource": "status", "fieldsV1": {}}
    applied = {"manager": "me", "operation": "Apply", "fieldsV1": {"f:data": {"f:c": {}}}}
    after = rebooked([CREATED, other, applied, status], "me")
    assert after[:2] == [other, status]
    assert after[2]["operation"] == "Apply"
    assert after[2]["fieldsV1"]["f:data"] == {"f:c": {}, ".": {}, "f:a": {}, "f:b": {}}
    assert len(after) == 3


def test_what_was_only_created_becomes_applied() -> None:
    assert rebooked([CREATED], "me") == [{**CREATED, "operation": "Apply"}]


trees: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.just({}), lambda inner: st.dictionaries(st.sampled_from(["f:a", "f:b"]), inner)
)


def paths(tree: dict[str, Any], above: str = "") -> set[str]:
    found = set()
    for key, inner in tree.items():
        found |= {f"{above}/{key}"} | paths(inner, f"{above}/{key}")
    return found


@given(created=trees, applied=trees)
def test_no_field_is_lost_and_none_is_added(
    created: dict[str, Any], applied: dict[str, Any]
) -> None:
    entries = [
        {"manager": "me", "operation": "Update", "fieldsV1": created},
        {"manager": "me", "operation": "Apply", "fieldsV1": applied},
    ]
    (after,) = rebooked(entries, "me")
    assert paths(after["fieldsV1"]) == paths(created) | paths(applied)
