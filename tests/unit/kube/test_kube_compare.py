"""Settled or not, on made-up objects; the integration tests have what a real server makes."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import quarterdeck.kube
from quarterdeck.api.meta import Object
from quarterdeck.kube import covers, differences, unsettled

ME = "me"


def needs_apply(live: Object, desired: Object, manager: str, subresource: str = "") -> bool:
    return any(unsettled(live, desired, manager, subresource))


def entry(fields: Object, operation: str = "Apply", manager: str = ME) -> Object:
    return {"manager": manager, "operation": operation, "fieldsV1": fields}


def live(content: Object, *entries: Object) -> Object:
    return {"metadata": {"name": "x", "managedFields": list(entries)}, **content}


def owned(value: Any) -> Object:
    """The fields that an apply of a value owns, where all lists are atomic."""
    if not isinstance(value, dict):
        return {}
    return {f"f:{field}": owned(inner) for field, inner in value.items()}


scalars = st.one_of(st.text(max_size=5), st.integers(-5, 5), st.booleans())
names = st.sampled_from(["alpha", "beta", "gamma", "delta"])
values = st.recursive(
    st.one_of(scalars, st.lists(scalars, max_size=3)),
    lambda inner: st.dictionaries(names, inner, min_size=1, max_size=3),
    max_leaves=8,
)
contents = st.dictionaries(names, values, min_size=1, max_size=4)


def leaves(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(value, dict):
        return [path]
    return [leaf for field, inner in value.items() for leaf in leaves(inner, (*path, field))]


def holder(content: Object, path: tuple[str, ...]) -> Object:
    for field in path[:-1]:
        content = content[field]
    return content


@given(contents)
def test_what_was_applied_is_settled(content: Object) -> None:
    assert not needs_apply(live(content, entry(owned(content))), content, ME)


@given(contents, st.data())
def test_a_removed_field_is_noticed(content: Object, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(leaves(content)))
    wanted = deepcopy(content)
    del holder(wanted, path)[path[-1]]
    assert needs_apply(live(content, entry(owned(content))), wanted, ME)


@given(contents, st.data())
def test_a_changed_field_is_noticed(content: Object, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(leaves(content)))
    wanted = deepcopy(content)
    holder(wanted, path)[path[-1]] = "something else"
    found = live(content, entry(owned(content)))
    assert list(unsettled(found, wanted, ME)) == [".".join(path)]


@given(contents, contents)
def test_what_others_add_does_not_matter(content: Object, theirs: Object) -> None:
    found = live(
        {**content, "theirs": theirs},
        entry(owned(content)),
        entry({"f:theirs": {}}, "Update", "o"),
    )
    assert not needs_apply(found, content, ME)


@given(contents)
def test_what_only_others_own_is_not_ours(content: Object) -> None:
    found = live(content, entry(owned(content), manager="other"))
    says_something = any(holder(content, path)[path[-1]] for path in leaves(content))
    assert needs_apply(found, content, ME) is says_something


@given(contents)
def test_what_was_created_is_settled(content: Object) -> None:
    found = live(content, entry(owned(content), "Update"))
    assert not needs_apply(found, content, ME)
    assert not differences(found, content, ME)[1]


@given(contents, st.data())
def test_a_created_field_that_is_no_longer_wanted_is_a_leftover(
    content: Object, data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(leaves(content)))
    wanted = deepcopy(content)
    del holder(wanted, path)[path[-1]]
    assert differences(live(content, entry(owned(content), "Update")), wanted, ME)[1]


@pytest.mark.parametrize(
    ("want", "have", "same"),
    [
        pytest.param({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": "1"}}, True, id="quantity"),
        pytest.param({"limits": {"cpu": 1}}, {"limits": {"cpu": "1"}}, True, id="number as one"),
        pytest.param({"data": {"a": "1000m"}}, {"data": {"a": "1"}}, False, id="only looks like"),
        pytest.param({"value": ""}, {}, True, id="an empty text is absent"),
        pytest.param({"value": ""}, {"value": "x"}, False, id="an empty text is not any text"),
        pytest.param({"on": False}, {}, True, id="false is absent"),
        pytest.param({"on": True}, {"on": 1}, False, id="true is not 1"),
        pytest.param({"n": 0}, {"n": False}, False, id="0 is not false"),
        pytest.param({"a": [{"on": True}]}, {"a": [{"on": 1}]}, False, id="nor deep inside"),
        pytest.param({"n": 1.0}, {"n": 1}, True, id="a whole number is a number"),
        pytest.param({"a": [1, 2]}, {"a": [2, 1]}, False, id="an atomic list has an order"),
        pytest.param({"a": []}, {}, True, id="an empty list is absent"),
        pytest.param({"selector": {}}, {"selector": {"a": "b"}}, False, id="an emptied selector"),
        pytest.param({"labels": {}}, {"labels": {"a": "b"}}, True, id="others' labels"),
    ],
)
def test_values_as_the_server_writes_them(want: Object, have: Object, same: bool) -> None:
    # A leaf for each field but the maps that merge by key.
    fields = {
        f"f:{name}": owned(value) if name in ("limits", "data") else {}
        for name, value in want.items()
    }
    assert needs_apply(live(have, entry(fields)), want, ME) is not same


KEYED: Object = {"f:env": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:value": {}}}}


@pytest.mark.parametrize(
    ("want", "settled"),
    [
        pytest.param([{"name": "a", "value": "1"}], True, id="the same"),
        pytest.param([{"name": "a", "value": "2"}], False, id="another value"),
        pytest.param([{"name": "a"}], False, id="a field less"),
        pytest.param([{"name": "b", "value": "1"}], False, id="another key"),
        pytest.param([], False, id="no item"),
        pytest.param([{"name": "a", "value": "1"}, {"name": "b"}], False, id="an item more"),
    ],
)
def test_a_keyed_list_among_items_of_others(want: list[Object], settled: bool) -> None:
    have = {"env": [{"name": "theirs"}, {"name": "a", "value": "1"}]}
    assert needs_apply(live(have, entry(KEYED)), {"env": want}, ME) is not settled


def test_the_order_of_our_items_counts() -> None:
    fields: Object = {"f:env": {'k:{"name":"a"}': {"f:name": {}}, 'k:{"name":"b"}': {"f:name": {}}}}
    have = live({"env": [{"name": "a"}, {"name": "theirs"}, {"name": "b"}]}, entry(fields))
    assert not needs_apply(have, {"env": [{"name": "a"}, {"name": "b"}]}, ME)
    assert needs_apply(have, {"env": [{"name": "b"}, {"name": "a"}]}, ME)


def test_a_key_that_is_left_to_the_server_is_its_default() -> None:
    fields: Object = {
        "f:ports": {
            'k:{"port":53,"protocol":"TCP"}': {"f:port": {}},
            'k:{"port":53,"protocol":"UDP"}': {"f:port": {}, "f:protocol": {}},
        }
    }
    have = {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}
    want = {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}
    assert not needs_apply(live(have, entry(fields)), want, ME)


def test_a_set_among_values_of_others() -> None:
    found = live({"tags": ["theirs", "a"]}, entry({"f:tags": {'v:"a"': {}}}))
    assert not needs_apply(found, {"tags": ["a"]}, ME)
    assert needs_apply(found, {"tags": ["a", "b"]}, ME)
    assert needs_apply(found, {"tags": []}, ME)


def test_the_status_is_judged_by_itself() -> None:
    main = entry({"f:spec": {}})
    status = {**entry({"f:status": {"f:ready": {}}}), "subresource": "status"}
    found = live({"spec": 1, "status": {"ready": True}}, main, status)
    assert not needs_apply(found, {"spec": 1}, ME)
    assert not needs_apply(found, {"status": {"ready": True}}, ME, "status")
    assert needs_apply(found, {"status": {"ready": False}}, ME, "status")


def test_identity_is_nobodys() -> None:
    meta = {"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "1"}
    found = {"metadata": {**meta, "managedFields": []}}
    assert not needs_apply(found, {"apiVersion": "v1", "kind": "K", "metadata": meta}, ME)


def test_covers_asks_for_values_alone() -> None:
    assert covers({"metadata": {}, "a": {"b": 1, "c": 2}}, {"a": {"b": 1}})
    assert not covers({"metadata": {}, "a": {"b": 1}}, {"a": {"b": 2}})


def test_what_the_package_exports_is_sorted_and_there() -> None:
    exported = quarterdeck.kube.__all__
    assert exported == sorted(exported)
    assert all(hasattr(quarterdeck.kube, name) for name in exported)
