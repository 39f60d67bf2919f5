"""The objects of several namespaces, read as one cache.

The API server lists one namespace or all of them, so a process that is limited to several has a
cache for each. Those caches run, sync and get recent each on its own, and the operator holds them;
this one only reads them together.
"""

import builtins
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.kube import Cache, Client
from quarterdeck.kube.store import Index, Subscriber

T = TypeVar("T", bound=TypedObject | Object)


class JoinedCache(Cache[T]):
    """The objects of several caches of one kind, each of another namespace."""

    def __init__(self, client: Client, resource: Resource[T], parts: Mapping[str, Cache[T]]):
        """Read these caches, by their namespaces."""
        super().__init__(client, resource)
        self._parts = parts

    async def run(self) -> NoReturn:
        """Not for this cache: its parts run."""
        raise NotImplementedError("the caches of the single namespaces run")

    def add_indexes(self, indexes: Mapping[str, Index[T]]) -> None:
        """Add these indexes to each cache."""
        for part in self._parts.values():
            part.add_indexes(indexes)

    @property
    def synced(self) -> bool:
        """Whether the first lists of all namespaces are complete."""
        return all(part.synced for part in self._parts.values())

    async def wait_synced(self) -> None:
        """Return when the first lists of all namespaces are complete."""
        for part in self._parts.values():
            await part.wait_synced()

    async def wait_answered(self) -> None:
        """Return when each cache is synced, or the server has no such resource type."""
        for part in self._parts.values():
            await part.wait_answered()

    @property
    def missing(self) -> bool:
        """Whether the server has no such resource type, as far as any of the caches knows."""
        return any(part.missing for part in self._parts.values())

    @property
    def lost_for(self) -> float:
        """Seconds since the first of the lost watches was lost; 0 while all are open."""
        return max(part.lost_for for part in self._parts.values())

    def get(self, key: Key) -> T | None:
        """The object, shared; None in a namespace that the process does not watch."""
        part = self._parts.get(key.namespace)
        return None if part is None else part.get(key)

    def list(self) -> builtins.list[T]:
        """The objects of all these namespaces, shared: do not change them."""
        return [obj for part in self._parts.values() for obj in part.list()]

    def by_index(self, name: str, value: str) -> builtins.list[T]:
        """The objects that the indexes have under a value, shared: do not change them."""
        return [obj for part in self._parts.values() for obj in part.by_index(name, value)]

    def __len__(self) -> int:
        return sum(len(part) for part in self._parts.values())

    def subscribe(self, subscriber: Subscriber[T]) -> Callable[[], None]:
        """Call a function for each change in any of the namespaces."""
        ends = [part.subscribe(subscriber) for part in self._parts.values()]

        def unsubscribe() -> None:
            for end in ends:
                end()

        return unsubscribe

    def list_again(self, since: float, version: int, asked: float) -> None:
        """Get the objects of each namespace again, unless that was started at `since` or later."""
        for part in self._parts.values():
            part.list_again(since, version, asked)
