"""Runs caches in tasks of their own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from quarterdeck.controller.tasks import endless, task_group
from quarterdeck.kube import Cache


def run_cache(tasks: asyncio.TaskGroup, cache: Cache[Any], name: str) -> "asyncio.Task[None]":
    """The task that keeps the cache current until it is cancelled; any other end is a fault."""
    work = cache.run()
    task = tasks.create_task(endless(name, work), name=name)
    # A task that is cancelled before it starts never awaits `work`, and Python would warn.
    task.add_done_callback(lambda _: work.close())
    return task


@asynccontextmanager
async def running_caches(*caches: Cache[Any]) -> AsyncIterator[None]:
    """Keep the caches current while the context lasts; it is entered when all are synced."""
    async with task_group() as tasks:
        running = [run_cache(tasks, cache, f"cache of {cache.resource.plural}") for cache in caches]
        for cache in caches:
            await cache.wait_synced()
        yield
        for task in running:
            task.cancel()
