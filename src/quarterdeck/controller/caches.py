"""One cache per resource and selection, shared by every controller of the process.

A cache runs while it has a holder: an operator holds its caches from its start, a group of
controllers while it is started.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar, cast

from quarterdeck.api.meta import Object, Resource, TypedObject
from quarterdeck.controller.cache_tasks import run_cache
from quarterdeck.controller.selection import ALL, Selection
from quarterdeck.controller.tasks import guarded
from quarterdeck.kube import Cache, Client
from quarterdeck.kube.collector import freeze_collector
from quarterdeck.kube.store import Index

T = TypeVar("T", bound=TypedObject | Object)


class CacheKey(NamedTuple):
    """What identifies a cache: callers with the same key share one."""

    api_version: str
    plural: str
    type: type
    namespace: str
    name: str
    label_selector: str
    field_selector: str
    all_managed_fields: bool

    def __str__(self) -> str:
        """The resource and its selection, as text for messages."""
        group = self.api_version.rpartition("/")[0]
        where = [f"{self.plural}.{group}" if group else self.plural]
        where += [f"in {self.namespace}"] if self.namespace else []
        where += [f"named {self.name}"] if self.name else []
        selectors = ",".join(filter(None, (self.label_selector, self.field_selector)))
        where += [f"with {selectors}"] if selectors else []
        return " ".join(where)


def cache_key(resource: Resource[Any], selection: Selection) -> CacheKey:
    """The key of the cache that holds these objects."""
    return CacheKey(
        resource.api_version,
        resource.plural,
        resource.type,
        selection.namespace if resource.namespaced else "",
        selection.name,
        str(selection.labels),
        selection.fields,
        selection.all_managed_fields,
    )


class Caches:
    """The caches that the operators of one process have asked for."""

    def __init__(self, client: Client, field_managers: Iterable[str]) -> None:
        self._client = client
        self._managers = tuple(field_managers)
        self._caches: dict[CacheKey, Cache[Any]] = {}
        self._held: Counter[CacheKey] = Counter()
        self._running: dict[CacheKey, asyncio.Task[None]] = {}
        self._locks: dict[CacheKey, asyncio.Lock] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._writers: tuple[Client, ...] = ()

    def get(
        self,
        resource: Resource[T],
        selection: Selection = ALL,
        *,
        indexes: Mapping[str, Index[T]] | None = None,
    ) -> tuple[CacheKey, Cache[T]]:
        """The cache of these objects; the same cache for the same resource and selection."""
        key = cache_key(resource, selection)
        cache = self._caches.get(key)
        if cache is None:
            cache = self._caches[key] = Cache(
                self._client,
                resource,
                namespace=key.namespace,
                name=key.name,
                label_selector=key.label_selector,
                field_selector=key.field_selector,
                own_manager=self._managers,
                keep_all_managed_fields=key.all_managed_fields,
            )
        cache.add_indexes(indexes or {})
        return key, cast("Cache[T]", cache)

    def hold(self, key: CacheKey) -> None:
        """Keep this cache current until each `hold` has had its `release`."""
        self._held[key] += 1
        if self._held[key] == 1 and self._tasks is not None:
            self._start(self._tasks, key)

    def release(self, key: CacheKey) -> None:
        """Undo one `hold`; a cache without a holder stops and is emptied."""
        self._held[key] -= 1
        if not self._held[key] and key in self._running:
            self._running.pop(key).cancel()

    async def run(self, writers: Collection[Client]) -> None:
        """Keep the held caches current until cancelled.

        A cache takes in the answers to these clients' writes at once.
        """
        self._writers = tuple(writers)
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for key in +self._held:
                self._start(tasks, key)
            await asyncio.Event().wait()

    def _start(self, tasks: asyncio.TaskGroup, key: CacheKey) -> None:
        name = f"cache of {key}"
        work = self._follow(key, name)
        task = tasks.create_task(guarded(name, work), name=name)
        # Not at the end of `_follow`: a task that is cancelled before it starts never gets there.
        task.add_done_callback(lambda _: self._empty(key))
        task.add_done_callback(lambda _: work.close())
        self._running[key] = task

    def _empty(self, key: CacheKey) -> None:
        """Empty the cache if it has no holder and its task has ended."""
        lock = self._locks.get(key)
        if not self._held[key] and not (lock is not None and lock.locked()):
            self._caches[key].reset()

    async def _follow(self, key: CacheKey, name: str) -> None:
        cache = self._caches[key]
        # The task of a cache that was released just now may still run.
        async with self._locks.setdefault(key, asyncio.Lock()):
            with ExitStack() as stack:
                for client in self._writers:
                    stack.enter_context(client.listening(cache.resource, cache))
                async with asyncio.TaskGroup() as tasks:
                    run_cache(tasks, cache, name)
                    first = f"first list of {key}"
                    tasks.create_task(guarded(first, _settle_after(cache)), name=first)


async def _settle_after(cache: Cache[Any]) -> None:
    await cache.wait_synced()
    freeze_collector()
