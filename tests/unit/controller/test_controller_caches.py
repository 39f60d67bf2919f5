"""One cache for everybody who asks for the same, without a server."""

from quarterdeck.api.meta import CONFIG_MAPS, NODES, Object
from quarterdeck.controller.caches import Caches
from quarterdeck.kube import Client, Connection


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
    assert caches.get(CONFIG_MAPS) != caches.get(CONFIG_MAPS, label_selector="a=b")
    assert caches.get(CONFIG_MAPS) != caches.get(CONFIG_MAPS, namespace="ns")


def test_a_namespace_makes_no_difference_to_cluster_scoped_objects() -> None:
    caches = make_caches()
    assert caches.get(NODES, namespace="ns") == caches.get(NODES)


def test_a_cache_is_described_in_words() -> None:
    key, _ = make_caches().get(CONFIG_MAPS, namespace="ns", label_selector="a=b")
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
