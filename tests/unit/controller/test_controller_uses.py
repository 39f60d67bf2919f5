"""What an operator asks of its manager, found out without a cluster."""

from typing import Any

import pytest

from quarterdeck.api.meta import CONFIG_MAPS, LEASES, Key, Resource
from quarterdeck.api.samples_v1alpha1 import NOTES
from quarterdeck.controller import (
    DONE,
    Controller,
    Manager,
    Result,
    Selection,
    UndeclaredWrite,
    Use,
    Watch,
    Write,
    recorded_uses,
)
from quarterdeck.kube import Cache, Client, Connection

Line = tuple[str, str, str, str, str]


async def reconcile(_key: Key) -> Result:
    return DONE


def lines(*asked: tuple[Resource[Any], Selection, list[Write]]) -> set[Line]:
    """Each use in words: resource, subresource, namespace, name, verbs."""

    def setup(manager: Manager) -> None:
        for resource, selection, writes in asked:
            manager.objects(resource, selection, writes=writes)

    return {
        (
            use.resource.plural,
            use.subresource,
            use.namespace,
            use.name,
            " ".join(sorted(use.verbs)),
        )
        for use in recorded_uses(setup)
    }


@pytest.mark.parametrize(
    ("selection", "writes", "expected"),
    [
        pytest.param(
            Selection(),
            [],
            {("configmaps", "", "", "", "list watch")},
            id="a cache lists and watches",
        ),
        pytest.param(
            Selection(namespace="ns"),
            ["ensure"],
            {("configmaps", "", "ns", "", "create get list patch watch")},
            id="ensure creates, patches and reads",
        ),
        pytest.param(
            Selection(name="x"),
            ["create", "delete"],
            {
                ("configmaps", "", "", "x", "delete list watch"),
                ("configmaps", "", "", "", "create"),
            },
            id="a create cannot be limited to a name",
        ),
        pytest.param(
            Selection(name="x"),
            ["status"],
            {
                ("configmaps", "", "", "x", "list watch"),
                ("configmaps", "status", "", "x", "patch"),
            },
            id="a status is a subresource",
        ),
    ],
)
def test_what_is_declared_is_what_is_needed(
    selection: Selection, writes: list[Write], expected: set[Line]
) -> None:
    assert lines((CONFIG_MAPS, selection, writes)) == expected


def test_uses_of_the_same_objects_are_one_whatever_their_type() -> None:
    assert lines((NOTES, Selection(), ["status"]), (NOTES.plain, Selection(), ["delete"])) == {
        ("notes", "", "", "", "delete list watch"),
        ("notes", "status", "", "", "patch"),
    }


def test_requests_past_the_objects_are_declared() -> None:
    (use,) = recorded_uses(lambda manager: manager.declare(LEASES, "get"))
    assert use == Use(resource=LEASES, verbs=frozenset({"get"}))


async def test_a_write_that_was_not_declared_raises_and_says_what_to_add() -> None:
    kept: list[Manager] = []
    recorded_uses(kept.append)
    notes = kept[0].objects(NOTES.plain, writes=["status"])
    note = {"metadata": {"namespace": "ns", "name": "n", "uid": "u", "resourceVersion": "1"}}
    for write, called in (
        ("ensure", notes.ensure(note)),
        ("create", notes.create(note)),
        ("patch", notes.patch(note, {})),
        ("delete", notes.delete(note)),
    ):
        with pytest.raises(UndeclaredWrite, match=f'add "{write}" to `writes`'):
            await called


def test_what_comes_after_the_start_and_would_never_run_is_refused() -> None:
    kept: list[Manager] = []
    recorded_uses(kept.append)
    (manager,) = kept
    known = manager.cache(CONFIG_MAPS)
    manager.finish_setup()
    assert manager.cache(CONFIG_MAPS) is known
    with pytest.raises(RuntimeError, match=r"the cache of notes.*ask for it in `setup`"):
        manager.objects(NOTES)
    with pytest.raises(RuntimeError, match="controller 'late' would never run"):
        manager.add(Controller("late", reconcile, [Watch(known)]))


def test_rights_that_come_after_the_start_are_refused_unless_they_are_there() -> None:
    """The role was made of what was asked for in `setup`."""
    kept: list[Manager] = []
    recorded_uses(kept.append)
    (manager,) = kept
    manager.objects(CONFIG_MAPS, writes=["patch"])
    manager.declare(LEASES, "get", "create")
    manager.finish_setup()
    before = manager.uses
    manager.objects(CONFIG_MAPS, writes=["patch"])
    manager.declare(LEASES, "get")
    with pytest.raises(RuntimeError, match="delete of configmaps would not be in its role"):
        manager.objects(CONFIG_MAPS, writes=["patch", "delete"])
    with pytest.raises(RuntimeError, match=r"update of leases .*ask for it in `setup`"):
        manager.declare(LEASES, "update")
    assert manager.uses == before


def test_who_follows_objects_by_name_may_read_them_where_they_are_and_says_so_in_time() -> None:
    kept: list[Manager] = []

    def setup(manager: Manager) -> None:
        kept.append(manager)
        manager.named(CONFIG_MAPS, Controller("a", reconcile, []), namespace="here")

    (use,) = recorded_uses(setup)
    assert use == Use(resource=CONFIG_MAPS, namespace="here", verbs=frozenset({"list", "watch"}))
    kept[0].finish_setup()
    with pytest.raises(RuntimeError, match="'configmaps watched by b' would never run"):
        kept[0].named(CONFIG_MAPS, Controller("b", reconcile, []), namespace="here")


def test_a_watch_of_objects_that_nobody_follows_is_refused() -> None:
    kept: list[Manager] = []
    recorded_uses(kept.append)
    stranger = Cache(Client(Connection(server="http://127.0.0.1:1", tls=None)), CONFIG_MAPS)
    with pytest.raises(ValueError, match="not asked of its manager"):
        kept[0].add(Controller("c", reconcile, [Watch(stranger)]))
