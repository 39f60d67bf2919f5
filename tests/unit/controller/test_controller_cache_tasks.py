"""Caches whose task ends without being asked: somebody is told."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from quarterdeck.api.meta import CONFIG_MAPS, Object
from quarterdeck.controller import TaskEnded
from quarterdeck.controller.cache_tasks import run_cache, running_caches
from quarterdeck.kube import Cache, Client, Connection

LIMIT = 30.0
NOWHERE = Connection(server="http://127.0.0.1:1", tls=None)


class Broken(Client):
    """A client in which a future is cancelled that the cache waits for."""

    async def lines(
        self,
        path: str,
        query: Mapping[str, str],
        timeout: float,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lost.cancel()
        await lost
        yield b""


@asynccontextmanager
async def cache_of(client: Client) -> AsyncIterator[Cache[Object]]:
    async with client:
        yield Cache(client, CONFIG_MAPS)


async def test_a_cache_that_was_cancelled_from_inside_ends_who_follows_it() -> None:
    async with asyncio.timeout(LIMIT), cache_of(Broken(NOWHERE)) as cache:
        with pytest.raises(ExceptionGroup) as raised:
            async with running_caches(cache):
                raise AssertionError("it is never filled")
    (fault,) = raised.value.exceptions
    assert isinstance(fault, TaskEnded)
    assert str(fault).startswith("cache of configmaps was cancelled from inside")


async def test_who_lets_a_cache_go_goes_on() -> None:
    async with (
        asyncio.timeout(LIMIT),
        cache_of(Client(NOWHERE)) as cache,
        asyncio.TaskGroup() as tasks,
    ):
        run_cache(tasks, cache, "not even begun").cancel()
        task = run_cache(tasks, cache, "begun")
        await asyncio.sleep(0)
        task.cancel()
