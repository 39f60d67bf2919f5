"""Objects by name: each is watched for as long as a key needs it.

This is for objects that other objects refer to, such as a Secret in a spec. Their names are known
only at run time, and the operator cannot watch the whole kind: it has too many objects, or the
operator may not read them all.

    secrets = manager.named(SECRETS, controller)

    async def reconcile(key: Key) -> Result:
        cluster = clusters.get(key)
        names = [secret_of(cluster)] if cluster else []
        if secrets.watch(key, names) or cluster is None:
            return DONE
        ...
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.controller.cache_tasks import run_cache
from quarterdeck.controller.mistakes import NoKey
from quarterdeck.controller.tasks import guarded
from quarterdeck.kube import Cache, Client

T = TypeVar("T", bound=TypedObject | Object)


class _Watched(Generic[T]):
    def __init__(self, cache: Cache[T]) -> None:
        self.cache = cache
        self.keys: set[Key] = set()
        self.tasks: list[asyncio.Task[None]] = []


class NamedObjects(Generic[T]):
    """Objects of one kind, each with a watch of its own, shared by the keys that need it."""

    def __init__(self, client: Client, resource: Resource[T], wake: Callable[[Key], None]) -> None:
        """When an object changes, call `wake` with each key that needs it."""
        self.resource = resource
        self._client = client
        self._wake = wake
        self._watched: dict[Key, _Watched[T]] = {}
        self._needed: dict[Key, frozenset[Key]] = {}
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def watched(self) -> frozenset[Key]:
        """The names of the objects that are watched."""
        return frozenset(self._watched)

    def watch(self, key: Key, names: Iterable[Key]) -> frozenset[Key]:
        """Watch exactly these objects for the key; returns the names that are not read yet.

        The key is woken when an object has been read, whether it exists or not, and at each
        change. For a key whose own object is gone, pass no names: this ends its watches.
        """
        wanted = frozenset(names)
        for name in wanted:
            if type(name) is not Key:
                raise NoKey(name)
        had = self._needed.pop(key, frozenset())
        if wanted:
            self._needed[key] = wanted
        for name in wanted - had:
            self._ensure_watched(name).keys.add(key)
        for name in had - wanted:
            self._stop_watching(name, key)
        return frozenset(name for name in wanted if not self._watched[name].cache.synced)

    def is_known(self, name: Key) -> bool:
        """Whether the server has answered: the object was read, or does not exist."""
        watched = self._watched.get(name)
        return watched is not None and watched.cache.synced

    def get(self, name: Key) -> T | None:
        """The object; None if there is none, if it is not read yet, or if it is not watched."""
        watched = self._watched.get(name)
        return None if watched is None else watched.cache.get(name)

    def trouble(self, name: Key) -> str:
        """Why the object cannot be read, in one line; empty if there was no error so far."""
        watched = self._watched.get(name)
        return "" if watched is None else watched.cache.trouble

    async def run(self) -> None:
        """Watch the objects that keys need, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for name, watched in self._watched.items():
                self._start(tasks, name, watched)
            await asyncio.Event().wait()

    def _ensure_watched(self, name: Key) -> _Watched[T]:
        if name in self._watched:
            return self._watched[name]
        cache = Cache(self._client, self.resource, namespace=name.namespace, name=name.name)
        watched = self._watched[name] = _Watched(cache)
        cache.subscribe(lambda _: self._wake_keys(watched))
        if self._tasks is not None:
            self._start(self._tasks, name, watched)
        return watched

    def _start(self, tasks: asyncio.TaskGroup, name: Key, watched: _Watched[T]) -> None:
        what = f"{self.resource.kind} {name}"
        watching = run_cache(tasks, watched.cache, f"cache of {what}")
        # No watch event says that an object does not exist, so the first list wakes the keys.
        synced = self._synced(watched)
        waking = tasks.create_task(guarded(f"sync {what}", synced), name=f"sync {what}")
        # A task that is cancelled before it starts never awaits the coroutine, which would warn.
        waking.add_done_callback(lambda _: synced.close())
        watched.tasks = [watching, waking]

    async def _synced(self, watched: _Watched[T]) -> None:
        await watched.cache.wait_synced()
        self._wake_keys(watched)

    def _wake_keys(self, watched: _Watched[T]) -> None:
        for key in watched.keys:
            self._wake(key)

    def _stop_watching(self, name: Key, key: Key) -> None:
        watched = self._watched[name]
        watched.keys.discard(key)
        if watched.keys:
            return
        del self._watched[name]
        for task in watched.tasks:
            task.cancel()
