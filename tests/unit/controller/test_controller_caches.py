"""One cache for everybody who asks for the same, without a server."""

import asyncio

import pytest

from quarterdeck.api.meta import CONFIG_MAPS, NODES, Object
from quarterdeck.api.samples_v1alpha1 import NOTES
from quarterdeck.controller import Selection
from quarterdeck.controller.caches import Caches
from quarterdeck.kube import Client, Connection, LabelSelector

A_IS_B = LabelSelector(match_labels={"a": "b"})


def make_caches() -> Caches:
    client = Client(Connection(server="http://127.0.0.1:1", tls=None))
    return Caches(client, ["one", "two"])


def by_owner(obj: Object) -> list[str]:
    return [obj["metadata"]["labels"]["owner"]]


def config_map(name: str, owner: str, manager: str = "one") -> Object:
    return {
        "metadata": {
            "namespace": "ns",
            "name": name,
            "uid": name,
            "resourceVersion": "5",
            "labels": {"owner": owner},
            "managedFields": [{"manager": manager}, {"manager": "somebody else"}],
        }
    }


def test_the_same_objects_are_the_same_cache() -> None:
    caches = make_caches()
    assert caches.get(CONFIG_MAPS) == caches.get(CONFIG_MAPS)
    assert caches.get(CONFIG_MAPS) != caches.get(CONFIG_MAPS, Selection(labels=A_IS_B))
    assert caches.get(CONFIG_MAPS) != caches.get(CONFIG_MAPS, Selection(namespace="ns"))


def test_typed_objects_and_their_plain_twins_are_in_two_caches() -> None:
    """A cache hands out objects of one type, whoever asked for them first."""
    caches = make_caches()
    typed, plain = caches.get(NOTES)[0], caches.get(NOTES.plain)[0]
    assert typed != plain
    assert caches.get(NOTES.plain)[0] == plain


def test_a_namespace_makes_no_difference_to_cluster_scoped_objects() -> None:
    caches = make_caches()
    assert caches.get(NODES, Selection(namespace="ns")) == caches.get(NODES)


def test_a_cache_is_described_in_words() -> None:
    key, _ = make_caches().get(CONFIG_MAPS, Selection(namespace="ns", labels=A_IS_B))
    assert str(key) == "configmaps in ns with a=b"


def test_an_index_that_is_asked_for_later_has_what_is_held_already() -> None:
    caches = make_caches()
    _, cache = caches.get(CONFIG_MAPS)
    cache.put(config_map("early", "a"))
    _, again = caches.get(CONFIG_MAPS, indexes={"owner": by_owner})
    again.put(config_map("late", "a"))
    again.put(config_map("other", "b"))
    assert [obj["metadata"]["name"] for obj in cache.by_index("owner", "a")] == ["early", "late"]


def test_the_field_owners_of_all_operators_are_kept_and_no_others() -> None:
    _, cache = make_caches().get(CONFIG_MAPS)
    for manager in ("one", "two"):
        cache.put(config_map(manager, "a", manager))
    kept = [obj["metadata"]["managedFields"] for obj in cache.list()]
    assert kept == [[{"manager": "one"}], [{"manager": "two"}]]


def test_an_index_of_one_operator_is_not_replaced_by_another_of_its_name() -> None:
    caches = make_caches()
    caches.get(CONFIG_MAPS, indexes={"owner": by_owner})
    caches.get(CONFIG_MAPS, indexes={"owner": by_owner})
    with pytest.raises(ValueError, match="there is another index 'owner'"):
        caches.get(CONFIG_MAPS, indexes={"owner": lambda _: ()})


async def test_a_cache_that_is_held_and_released_at_once_is_empty_in_the_end() -> None:
    """Whatever the moment: also before the task that follows it has begun."""
    for turns in range(25):
        caches = make_caches()
        key, cache = caches.get(CONFIG_MAPS)
        caching = asyncio.create_task(caches.run([]))
        caches.hold(key)
        for _ in range(5):
            await asyncio.sleep(0)
        cache.put(config_map("x", "a"))
        assert len(cache) == 1
        caches.release(key)
        for held in (False, True):
            for _ in range(turns if held else 0):
                await asyncio.sleep(0)
            (caches.release if held else caches.hold)(key)
        async with asyncio.timeout(10):
            while len(cache):  # noqa: ASYNC110 - its tasks end by themselves
                await asyncio.sleep(0)
        caching.cancel()
        await asyncio.gather(caching, return_exceptions=True)
