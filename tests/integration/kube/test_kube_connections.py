"""How many connections a client opens, as the documentation says."""

import asyncio

from tests.integration.kube.scripted_server import (
    LIMIT,
    Asked,
    Reply,
    answer,
    config_map,
    initial,
    scripted,
    stream,
)

from quarterdeck.api.meta import CONFIG_MAPS, SECRETS
from quarterdeck.kube import Cache, Client
from quarterdeck.testing.waiting import eventually_async


async def test_one_for_each_cache_and_for_each_request_at_the_same_time() -> None:
    def script(asked: Asked) -> Reply:
        return stream(initial(5)) if asked.watch else answer(200, config_map("a", 1))

    async with scripted(script) as server, Client(server.connection) as client:
        caches = [
            Cache(client, CONFIG_MAPS),
            Cache(client, CONFIG_MAPS, label_selector="a=b"),
            Cache(client, SECRETS),
        ]
        following = [asyncio.create_task(cache.run()) for cache in caches]
        await eventually_async(
            lambda: all(cache.synced for cache in caches), "all caches are synced", LIMIT
        )
        assert {asked.connection for asked in server.asked} == {1, 2, 3}
        for _ in range(3):
            await asyncio.gather(*(client.get(CONFIG_MAPS, "a", "n") for _ in range(4)))
            await client.get(CONFIG_MAPS, "a", "n")
        assert {asked.connection for asked in server.asked} == set(range(1, 8))
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)


async def test_a_watch_that_ends_in_order_is_opened_again_on_its_connection() -> None:
    def script(asked: Asked) -> Reply:
        return stream(initial(5) if asked.from_start else b"", ends=len(server.asked) < 3)

    async with scripted(script) as server, Client(server.connection) as client:
        following = asyncio.create_task(Cache(client, CONFIG_MAPS).run())
        await eventually_async(lambda: len(server.asked) == 3, "three requests", LIMIT)
        assert {asked.connection for asked in server.asked} == {1}
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
