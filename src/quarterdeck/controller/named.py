"""Objects by name: each is followed while a key needs it, and no longer.

For objects that others name in theirs, as a Secret in a field of a spec. Which ones these are is
known only at run time, and all of the kind would be too many to read, or more than one may read.

    secrets = manager.named(SECRETS, controller)

    async def reconcile(key: Key) -> Result:
        cluster = clusters.get(key)
        names = [secret_of(cluster)] if cluster else []
        if secrets.hold(key, names) or cluster is None:
            return DONE
        ...
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.controller.cache_tasks import run_cache
from quarterdeck.controller.tasks import guarded
from quarterdeck.kube import Cache, Client

T = TypeVar("T", bound=TypedObject | Object)


class _Followed(Generic[T]):
    def __init__(self, cache: Cache[T]) -> None:
        self.cache = cache
        self.holders: set[Key] = set()
        self.tasks: list[asyncio.Task[None]] = []


class NamedObjects(Generic[T]):
    """Objects of one kind, each with a watch of its own, which all keys that hold it share."""

    def __init__(self, client: Client, resource: Resource[T], wake: Callable[[Key], None]) -> None:
        """Call `wake` with each key that holds an object when that object has changed."""
        self.resource = resource
        self._client = client
        self._wake = wake
        self._followed: dict[Key, _Followed[T]] = {}
        self._held: dict[Key, frozenset[Key]] = {}
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def followed(self) -> frozenset[Key]:
        """The names of the objects that somebody holds."""
        return frozenset(self._followed)

    def hold(self, holder: Key, names: Iterable[Key]) -> frozenset[Key]:
        """Follow exactly these objects for the holder; those come back that are not known yet.

        The holder is woken when they are known, there or not, and at each change. A holder that
        is gone has to be given no names, so that its objects are let go.
        """
        wanted, had = frozenset(names), self._held.pop(holder, frozenset())
        if wanted:
            self._held[holder] = wanted
        for name in wanted - had:
            self._follow(name).holders.add(holder)
        for name in had - wanted:
            self._let_go(name, holder)
        return frozenset(name for name in wanted if not self._followed[name].cache.synced)

    def is_known(self, name: Key) -> bool:
        """Whether the object was read, or it was found that there is none."""
        followed = self._followed.get(name)
        return followed is not None and followed.cache.synced

    def get(self, name: Key) -> T | None:
        """The object; None if there is none, if it is not known yet, or if nobody holds it."""
        followed = self._followed.get(name)
        return None if followed is None else followed.cache.get(name)

    def trouble(self, name: Key) -> str:
        """Why the object cannot be read, in one line; empty when it can, or it is on its way."""
        followed = self._followed.get(name)
        return "" if followed is None else followed.cache.trouble

    async def run(self) -> None:
        """Follow what is held, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for name, followed in self._followed.items():
                self._start(tasks, name, followed)
            await asyncio.Event().wait()

    def _follow(self, name: Key) -> _Followed[T]:
        if name in self._followed:
            return self._followed[name]
        cache = Cache(self._client, self.resource, namespace=name.namespace, name=name.name)
        followed = self._followed[name] = _Followed(cache)
        cache.subscribe(lambda _: self._wake_holders(followed))
        if self._tasks is not None:
            self._start(self._tasks, name, followed)
        return followed

    def _start(self, tasks: asyncio.TaskGroup, name: Key, followed: _Followed[T]) -> None:
        what = f"{self.resource.kind} {name}"
        following = run_cache(tasks, followed.cache, f"cache of {what}")
        # That there is no such object is news too, and no change tells it.
        synced = self._synced(followed)
        telling = tasks.create_task(guarded(f"sync {what}", synced), name=f"sync {what}")
        # One that is cancelled before it has begun would leave this behind, and a warning.
        telling.add_done_callback(lambda _: synced.close())
        followed.tasks = [following, telling]

    async def _synced(self, followed: _Followed[T]) -> None:
        await followed.cache.wait_synced()
        self._wake_holders(followed)

    def _wake_holders(self, followed: _Followed[T]) -> None:
        for holder in followed.holders:
            self._wake(holder)

    def _let_go(self, name: Key, holder: Key) -> None:
        followed = self._followed[name]
        followed.holders.discard(holder)
        if followed.holders:
            return
        del self._followed[name]
        for task in followed.tasks:
            task.cancel()
