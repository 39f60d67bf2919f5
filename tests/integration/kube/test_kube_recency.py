"""How a cache finds out whether it holds what the storage holds, and what it does if it does not.

On scripted servers, which say what a silent watch, a server without streaming lists, a storage that
was restored from a backup, and a server that fails say.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.integration.kube.scripted_server import (
    LIMIT,
    Asked,
    Reply,
    ScriptedServer,
    answer,
    config_map,
    event,
    initial,
    listing,
    scripted,
    stream,
)

from quarterdeck.api.meta import CONFIG_MAPS, Key, Object
from quarterdeck.kube import Cache, Client
from quarterdeck.kube.recency import FEW_OBJECTS, ensure_recent

OLD, NEW = config_map("a", 1), config_map("a", 15)
NOT_FOUND = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}
BAD_REQUEST = {"kind": "Status", "status": "Failure", "reason": "BadRequest", "code": 400}


@asynccontextmanager
async def following(server: ScriptedServer) -> AsyncIterator[Cache[Object]]:
    async with Client(server.connection) as client:
        cache: Cache[Object] = Cache(client, CONFIG_MAPS, namespace="n")
        task = asyncio.create_task(cache.run())
        try:
            await asyncio.wait_for(cache.wait_answered(), LIMIT)
            yield cache
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def brought_up(cache: Cache[Object]) -> None:
    async with asyncio.timeout(LIMIT):
        await ensure_recent(cache, time.monotonic())


def questions(server: ScriptedServer) -> list[str]:
    """What was asked after the first list: the version, all objects, or what changed."""
    kinds = [
        "one" if it.query.get("limit") == "1" else "stream" if it.from_start else "events"
        for it in server.asked
    ]
    return kinds[1:]


async def test_a_cache_that_is_at_the_storages_version_is_not_listed_again() -> None:
    def script(asked: Asked) -> Reply:
        return stream(initial(10, OLD)) if asked.watch else listing(10, OLD)

    async with scripted(script) as server, following(server) as cache:
        await brought_up(cache)
        assert questions(server) == ["one"]
        await brought_up(cache)
        assert questions(server) == ["one", "one"]


async def test_a_cache_that_was_filled_since_then_needs_no_request() -> None:
    began = time.monotonic()
    async with scripted(lambda _: stream(initial(10, OLD))) as server, following(server) as cache:
        await ensure_recent(cache, began)
        assert questions(server) == []


async def test_a_cache_whose_watch_is_silent_is_listed_again() -> None:
    """The watch that was there is given up, so that what it may still say is not taken."""
    state = [initial(10, OLD), initial(20, NEW)]

    def script(asked: Asked) -> Reply:
        return stream(state.pop(0)) if asked.watch else listing(20, NEW)

    async with scripted(script) as server, following(server) as cache:
        await brought_up(cache)
        assert cache.get(Key("n", "a")) == NEW
        assert questions(server) == ["one", "stream"]


async def test_a_storage_that_is_behind_what_was_known_is_listed() -> None:
    """It was restored from a backup: a version that is known is no proof of anything."""
    state = [initial(10, OLD), initial(6)]

    def script(asked: Asked) -> Reply:
        return stream(state.pop(0)) if asked.watch else listing(5)

    async with scripted(script) as server, following(server) as cache:
        await brought_up(cache)
        assert len(cache) == 0
        assert questions(server) == ["one", "stream"]


async def test_without_streaming_lists_no_older_state_than_the_storages_is_asked_for() -> None:
    """Its memory may be old: a list from there counts if it has reached the storage's version."""
    asked_for = []

    def script(asked: Asked) -> Reply:
        if asked.from_start:
            return answer(400, BAD_REQUEST)
        if asked.watch:
            return stream()
        if asked.query.get("limit") == "1":
            return listing(20, NEW)
        version = asked.query["resourceVersion"]
        asked_for.append(version)
        return listing(20, NEW) if int(version) >= 20 else listing(10, OLD)

    async with scripted(script) as server, following(server) as cache:
        assert cache.get(Key("n", "a")) == OLD
        await brought_up(cache)
        assert cache.get(Key("n", "a")) == NEW
        assert asked_for == ["0", "20"]


async def test_many_objects_are_not_listed_again_where_events_flow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("quarterdeck.kube.recency.CATCH_UP_TIMEOUT", LIMIT)
    many = [config_map(f"m{number}", number + 1) for number in range(FEW_OBJECTS + 1)]
    newest = config_map("a", 1001)

    def script(asked: Asked) -> Reply:
        if asked.from_start:
            return stream(initial(900, *many), ends=True)
        if asked.watch:
            is_asked = "one" in questions(server)
            return stream(event("ADDED", newest)) if is_asked else stream(ends=True)
        return listing(1000)

    async with scripted(script) as server, following(server) as cache:
        await brought_up(cache)
        assert cache.get(Key("n", "a")) == newest
        assert "stream" not in questions(server)


async def test_what_fails_is_tried_again() -> None:
    state = [listing(20, NEW), answer(500, b"{}")]

    def script(asked: Asked) -> Reply:
        if not asked.watch:
            return state.pop() if len(state) > 1 else state[0]
        first = len([it for it in server.asked if it.from_start]) == 1
        return stream(initial(10, OLD) if first else initial(20, NEW))

    async with scripted(script) as server, following(server) as cache:
        await brought_up(cache)
        assert cache.get(Key("n", "a")) == NEW


async def test_a_resource_type_that_is_not_there_is_nothing_to_wait_for() -> None:
    async with (
        scripted(lambda _: answer(404, NOT_FOUND)) as server,
        following(server) as cache,
    ):
        await brought_up(cache)
        assert cache.missing
