"""From changed objects to keys."""

from collections.abc import Iterable
from typing import Any

import pytest

from quarterdeck.api.meta import CONFIG_MAPS, DEPLOYMENTS, NODES, Key, Object, ObjectMeta, Resource
from quarterdeck.api.samples_v1alpha1 import NOTES, Note, NoteSpec
from quarterdeck.controller import (
    Watch,
    controller_of,
    owned_by,
    spec_changed,
    to_labelled,
    to_owner,
    to_self,
    to_singleton,
)
from quarterdeck.kube import Cache, Change, Client, Connection


def of(resource: Resource[Any]) -> Cache[Any]:
    return Cache(Client(Connection(server="http://127.0.0.1:1", tls=None)), resource)


def obj(name: str, **metadata: Any) -> Object:
    return {"metadata": {"namespace": "ns", "name": name, **metadata}}


def owner(kind: str, name: str, api_version: str, *, controller: bool = True) -> Object:
    return {
        "kind": kind,
        "name": name,
        "apiVersion": api_version,
        "uid": "u",
        "controller": controller,
    }


def note(name: str, **metadata: Any) -> Note:
    return Note(
        metadata=ObjectMeta(namespace="ns", name=name, uid="u", **metadata), spec=NoteSpec(text="")
    )


def keys(watch: Watch, old: Any, new: Any) -> list[Key]:
    found: list[Key] = []
    watch.handler(found.append)(Change(Key("ns", "x"), old, new))
    return found


NOTE_OWNED = obj("x", ownerReferences=[owner("Note", "n", "samples.quarterdeck.dev/v1beta9")])


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        pytest.param(NOTE_OWNED, [Key("ns", "n")], id="its owner, whatever the version"),
        pytest.param(obj("x"), [], id="nobody without an owner"),
        pytest.param(
            obj("x", ownerReferences=[owner("Note", "n", "example.test/v1")]),
            [],
            id="not an owner of the same kind in another group",
        ),
        pytest.param(
            obj(
                "x",
                ownerReferences=[
                    owner("Note", "n", "samples.quarterdeck.dev/v1alpha1", controller=False)
                ],
            ),
            [],
            id="not an owner that does not control it",
        ),
    ],
)
def test_an_owned_object_wakes(changed: Object, found: list[Key]) -> None:
    assert keys(Watch(of(CONFIG_MAPS), to_owner(NOTES)), None, changed) == found


def test_an_object_of_a_cluster_scoped_owner_wakes_a_key_without_a_namespace() -> None:
    changed = obj("x", ownerReferences=[owner("Node", "n", "v1")])
    assert keys(Watch(of(CONFIG_MAPS), to_owner(NODES)), None, changed) == [Key("", "n")]


def test_an_object_that_moves_to_another_owner_wakes_both() -> None:
    moved = obj("x", ownerReferences=[owner("Note", "m", "samples.quarterdeck.dev/v1alpha1")])
    watch = Watch(of(CONFIG_MAPS), to_owner(NOTES))
    assert keys(watch, NOTE_OWNED, moved) == [Key("ns", "n"), Key("ns", "m")]


def test_a_deleted_object_wakes_its_own_key_and_its_owners() -> None:
    assert keys(Watch(of(NOTES), to_self), note("x"), None) == [Key("ns", "x")]
    assert keys(Watch(of(CONFIG_MAPS), to_owner(NOTES)), NOTE_OWNED, None) == [Key("ns", "n")]


def test_a_function_maps_to_any_keys() -> None:
    def everything(_changed: Object) -> Iterable[Key]:
        return (Key("", "one"), Key("", "two"))

    assert keys(Watch(of(DEPLOYMENTS), everything), None, obj("x")) == [
        Key("", "one"),
        Key("", "two"),
    ]


def test_a_singleton_is_woken_by_anything() -> None:
    watch: Watch = Watch(of(NODES), to_singleton(Key("", "cluster")))
    assert set(keys(watch, obj("x"), obj("x"))) == {Key("", "cluster")}


LABELS = {"example.test/name": "n", "example.test/namespace": "elsewhere"}
NAME, NAMESPACE = LABELS


@pytest.mark.parametrize(
    ("mapping", "labels", "found"),
    [
        pytest.param(to_labelled(NAME), LABELS, [Key("ns", "n")], id="in the same namespace"),
        pytest.param(
            to_labelled(NAME, namespace=NAMESPACE),
            LABELS,
            [Key("elsewhere", "n")],
            id="in the namespace that a label names",
        ),
        pytest.param(
            to_labelled(NAME, namespaced=False), LABELS, [Key("", "n")], id="of cluster scope"
        ),
        pytest.param(to_labelled(NAME), {}, [], id="nothing without the label"),
        pytest.param(
            to_labelled(NAME, namespace=NAMESPACE),
            {NAME: "n"},
            [],
            id="nothing without the namespace's label",
        ),
    ],
)
def test_labels_name_what_is_woken(mapping: Any, labels: dict[str, str], found: list[Key]) -> None:
    watch: Watch = Watch(of(CONFIG_MAPS), mapping)
    assert keys(watch, None, obj("x", labels=labels)) == found
    typed: Watch = Watch(of(NOTES), mapping)
    assert keys(typed, None, note("x", labels=labels)) == found


@pytest.mark.parametrize(
    ("old", "new", "matters"),
    [
        pytest.param(None, obj("x", generation=1), True, id="a new object"),
        pytest.param(obj("x", generation=1), None, True, id="a deleted object"),
        pytest.param(obj("x", generation=1), obj("x", generation=2), True, id="a new spec"),
        pytest.param(obj("x", generation=1), obj("x", generation=1), False, id="only status"),
        pytest.param(
            obj("x", generation=1),
            obj("x", generation=1, deletionTimestamp="now"),
            True,
            id="one that is going",
        ),
        pytest.param(note("x", generation=1), note("x", generation=2), True, id="typed, new spec"),
        pytest.param(note("x", generation=1), note("x", generation=1), False, id="typed, status"),
    ],
)
def test_spec_changed_tells_what_matters(old: Any, new: Any, matters: bool) -> None:
    assert spec_changed(old, new) is matters
    watch: Watch = Watch(of(CONFIG_MAPS), predicate=spec_changed)
    assert bool(keys(watch, old, new)) is matters


def test_what_is_owned_names_its_owner() -> None:
    metadata = owned_by(note("n"))
    made = controller_of({"metadata": metadata})
    assert metadata["namespace"] == "ns"
    assert made is not None
    assert (made.kind, made.name, made.uid) == ("Note", "n", "u")
    assert made.api_version == "samples.quarterdeck.dev/v1alpha1"
    assert controller_of(note("n")) is None
