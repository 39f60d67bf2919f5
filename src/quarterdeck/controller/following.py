"""Caches that run in a task of their own, whose end nobody misses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from quarterdeck.controller.tasks import endless
from quarterdeck.kube import Cache


def follow(tasks: asyncio.TaskGroup, cache: Cache[Any], name: str) -> "asyncio.Task[None]":
    """The task that keeps the cache up to date until it is cancelled; any other end is a fault."""
    work = cache.run()
    task = tasks.create_task(endless(name, work), name=name)
    # One that is cancelled before it has begun would leave this behind, and a warning.
    task.add_done_callback(lambda _: work.close())
    return task


@asynccontextmanager
async def following(*caches: Cache[Any]) -> AsyncIterator[None]:
    """Keep the caches up to date while the context lasts, which begins when all are filled."""
    async with asyncio.TaskGroup() as tasks:
        running = [follow(tasks, cache, f"cache of {cache.resource.plural}") for cache in caches]
        for cache in caches:
            await cache.wait_synced()
        yield
        for task in running:
            task.cancel()
