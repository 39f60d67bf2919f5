"""A cache that holds only wanted objects, whichever way they come: list, watch or own write."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.objects import config_map

from quarterdeck.api.meta import CONFIG_MAPS, Key
from quarterdeck.kube import Cache, Client, load_kubeconfig


async def so(look: Callable[[], bool]) -> None:
    """Return when it is so."""
    while True:
        if look():
            return
        await asyncio.sleep(0.02)


async def test_only_wanted_objects_are_held(kubeconfig: Path, namespace: str) -> None:
    keys = {Key(namespace, name) for name in ("listed", "watched", "written")}
    changed: list[str] = []
    async with (
        Client(load_kubeconfig(kubeconfig)) as ours,
        Client(load_kubeconfig(kubeconfig)) as theirs,
    ):
        for name in ("listed", "listed-not"):
            await theirs.create(CONFIG_MAPS, config_map(namespace, name))
        cache = Cache(ours, CONFIG_MAPS, namespace=namespace, wanted=keys.__contains__)
        cache.subscribe(lambda change: changed.append(change.key.name))
        following = asyncio.create_task(cache.run())
        try:
            async with asyncio.timeout(60):
                await cache.wait_synced()
                for name in ("written-not", "written"):
                    await ours.create(CONFIG_MAPS, config_map(namespace, name))
                assert cache.get(Key(namespace, "written"))
                for name in ("watched-not", "watched"):
                    await theirs.create(CONFIG_MAPS, config_map(namespace, name))
                await theirs.patch(CONFIG_MAPS, "watched-not", {"data": {"a": "1"}}, namespace)
                await theirs.patch(CONFIG_MAPS, "watched", {"data": {"a": "1"}}, namespace)
                await so(lambda: changed.count("watched") >= 2)
                await theirs.delete(CONFIG_MAPS, "watched-not", namespace)
                await theirs.delete(CONFIG_MAPS, "watched", namespace)
                await so(lambda: cache.get(Key(namespace, "watched")) is None)
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    assert sorted({one["metadata"]["name"] for one in cache.list()}) == ["listed", "written"]
    assert set(changed) == {"listed", "watched", "written"}
