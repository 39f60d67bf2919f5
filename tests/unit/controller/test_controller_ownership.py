"""Who owns which fields, and how ownership moves."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.controller.ownership import as_applied, moved, owns_labels

CREATED = {
    "manager": "me",
    "operation": "Update",
    "fieldsV1": {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
}


def test_rebooking_makes_one_applied_entry_of_ours_and_keeps_those_of_others() -> None:
    other = {"manager": "other", "operation": "Update", "fieldsV1": {"f:data": {"f:z": {}}}}
    status = {"manager": "me", "operation": "Update", "subresource": "status", "fieldsV1": {}}
    applied = {"manager": "me", "operation": "Apply", "fieldsV1": {"f:data": {"f:c": {}}}}
    after = as_applied([CREATED, other, applied, status], "me")
    assert after[:2] == [other, status]
    assert after[2]["operation"] == "Apply"
    assert after[2]["fieldsV1"]["f:data"] == {"f:c": {}, ".": {}, "f:a": {}, "f:b": {}}
    assert len(after) == 3


def test_what_was_only_created_becomes_applied() -> None:
    assert as_applied([CREATED], "me") == [{**CREATED, "operation": "Apply"}]


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
    (after,) = as_applied(entries, "me")
    assert paths(after["fieldsV1"]) == paths(created) | paths(applied)


def entry(manager: str, operation: str, fields: Any, **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **more}


def test_all_that_one_owner_has_becomes_one_applied_entry_of_the_other() -> None:
    kept = entry("somebody", "Update", {"f:data": {"f:z": {}}})
    before = [
        entry("old", "Update", {"f:data": {"f:a": {}}}),
        kept,
        entry("old", "Apply", {"f:data": {"f:b": {}}}, time="then"),
        entry("new", "Apply", {"f:data": {"f:c": {}}}),
    ]
    after = moved(before, "old", "new")
    all_three: Any = {"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}}
    assert after == [kept, entry("new", "Apply", all_three)]


def test_a_status_moves_as_what_it_is() -> None:
    """An apply of the object does not reach it."""
    fields: Any = {"f:status": {"f:a": {}}}
    before = [
        entry("old", "Update", fields, subresource="status"),
        entry("new", "Update", {"f:status": {"f:b": {}}}, subresource="status"),
    ]
    both: Any = {"f:status": {"f:a": {}, "f:b": {}}}
    assert moved(before, "old", "new") == [entry("new", "Update", both, subresource="status")]
    assert before[0]["fieldsV1"] == fields, "what was given is not changed"


def test_nothing_moves_from_somebody_who_owns_nothing() -> None:
    before = [entry("new", "Apply", {"f:data": {}}), entry("x", "Update", {})]
    assert sorted(moved(before, "old", "new"), key=str) == sorted(before, key=str)


@given(created=trees, applied=trees, had=trees)
def test_no_field_is_lost_in_a_move_and_none_is_added(
    created: dict[str, Any], applied: dict[str, Any], had: dict[str, Any]
) -> None:
    entries = [
        entry("old", "Update", created),
        entry("new", "Apply", had),
        entry("old", "Apply", applied),
    ]
    (after,) = moved(entries, "old", "new")
    assert paths(after["fieldsV1"]) == paths(created) | paths(applied) | paths(had)
    assert (after["manager"], after["operation"]) == ("new", "Apply")


def test_a_label_is_owned_by_whoever_wrote_it() -> None:
    labels: Any = {"f:metadata": {"f:labels": {"f:example.test/a": {}}}}
    annotated = entry("other", "Update", {"f:metadata": {"f:annotations": {"f:b": {}}}})
    obj = {"metadata": {"managedFields": [entry("me", "Apply", labels), annotated]}}
    assert owns_labels(obj, "me", ["example.test/a"])
    assert not owns_labels(obj, "me", ["example.test/a", "example.test/b"])
    assert not owns_labels(obj, "other", ["example.test/a"])
    assert not owns_labels({"metadata": {}}, "me", ["example.test/a"])
