"""The objects of several namespaces, read as one cache."""

import msgspec
import pytest
from tests import objects

from quarterdeck.api.meta import Key
from quarterdeck.api.samples_v1alpha1 import NOTES, Note
from quarterdeck.controller import Manager, Selection, Watch, recorded_uses
from quarterdeck.controller.controller import Controller
from quarterdeck.controller.joined_cache import JoinedCache
from quarterdeck.kube import Cache, Change, Client, Connection

CLIENT = Client(Connection(server="http://127.0.0.1:1", tls=None))


def note(name: str, namespace: str) -> Note:
    found = objects.note(name, "hi", namespace)
    found["metadata"] |= {"uid": name, "resourceVersion": "1"}
    return msgspec.convert(found, Note)


def caches() -> tuple[JoinedCache[Note], dict[str, Cache[Note]]]:
    by_text = {"text": lambda one: [one.spec.text]}
    parts = {name: Cache(CLIENT, NOTES, namespace=name, indexes=by_text) for name in ("a", "b")}
    return JoinedCache(CLIENT, NOTES, parts), parts


def test_objects_are_found_in_their_namespace_and_in_no_other() -> None:
    joined, parts = caches()
    for name, part in parts.items():
        part.put(note(f"in-{name}", name))
    assert [one.metadata.name for one in joined.list()] == ["in-a", "in-b"]
    assert len(joined) == 2
    assert joined.get(Key("b", "in-b")) is parts["b"].get(Key("b", "in-b"))
    assert joined.get(Key("a", "in-b")) is None
    assert joined.get(Key("elsewhere", "in-a")) is None
    assert len(joined.by_index("text", "hi")) == 2


def test_a_subscriber_hears_of_all_namespaces_until_it_ends() -> None:
    joined, parts = caches()
    parts["a"].put(note("before", "a"))
    seen: list[Key] = []

    def heard(change: Change[Note]) -> None:
        seen.append(change.key)

    unsubscribe = joined.subscribe(heard)
    parts["b"].put(note("after", "b"))
    assert seen == [Key("a", "before"), Key("b", "after")]
    unsubscribe()
    parts["a"].put(note("late", "a"))
    assert len(seen) == 2


async def test_it_is_synced_when_every_part_is() -> None:
    joined, parts = caches()
    seen = []
    for part in parts.values():
        seen.append(joined.synced)
        part._synced.set()
    await joined.wait_synced()
    assert [*seen, joined.synced] == [False, False, True]
    with pytest.raises(NotImplementedError):
        await joined.run()


def test_only_selections_without_a_namespace_are_limited() -> None:
    """Each namespace is a use of its own, so the rights that follow are Roles."""

    def setup(manager: Manager) -> None:
        notes = manager.objects(NOTES, writes=["status"])
        assert manager.objects(NOTES).cache is notes.cache
        manager.objects(NOTES, Selection(namespace="fixed"))
        manager.add(Controller("notes", None, [Watch(notes)]))  # type: ignore[arg-type]
        group = manager.group("group")
        both = [Watch(notes), Watch(group.objects(NOTES))]
        group.add(Controller("of-group", None, both))  # type: ignore[arg-type]

    found = recorded_uses(setup, namespaces=("a", "b"))
    reads = [use.namespace for use in found if "watch" in use.verbs]
    writes = [use.namespace for use in found if "patch" in use.verbs]
    assert (reads, writes) == (["a", "b", "fixed"], ["a", "b"])
