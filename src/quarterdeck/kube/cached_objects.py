"""The objects in a cache, for its readers; `cache` keeps them current.

All users of a cache share its objects: **do not change an object that you got from a cache**; copy
it first. `store` decides what an event changes. This module decides which objects belong to the
cache, how recent they are, and what an unreadable event changes.
"""

import asyncio
import builtins
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.kube.codec import MALFORMED, Codec
from quarterdeck.kube.errors import UnexpectedAnswer, error_from_status
from quarterdeck.kube.paths import collection, selectors
from quarterdeck.kube.selector import parse_selector
from quarterdeck.kube.store import Index, Store, Subscriber
from quarterdeck.kube.watch_events import (
    Added,
    Bookmark,
    Deleted,
    Event,
    Failure,
    Modified,
    UnreadableObject,
)

T = TypeVar("T", bound="TypedObject | Object")


class UnidentifiedEvent(UnexpectedAnswer):
    """An event does not identify its object: the cache has to get all objects again."""


class CachedObjects(Generic[T]):
    """The objects of one resource and selection in memory."""

    def __init__(
        self,
        codec: Codec[T],
        resource: Resource[T],
        *,
        only: Key,
        label_selector: str,
        field_selector: str,
        indexes: Mapping[str, Index[T]] | None,
        holds_all: bool,
    ) -> None:
        """Hold the selected objects; `only` has a namespace, or the key of a single object."""
        self.resource = resource
        self._codec = codec
        self._holds_all = holds_all
        self._store: Store[T] = Store(codec.identify, indexes)
        self._path = collection(resource, only.namespace)
        self._query = selectors(label_selector, field_selector, only.name)
        self._only = only
        self._labels_match = parse_selector(label_selector).matches
        self._by_fields = bool(field_selector)
        self._stale = True  # a watch cannot continue from the version held: all objects are needed
        self._synced = asyncio.Event()
        self._answered = asyncio.Event()
        self._refilled = asyncio.Event()
        self._missing = False
        self._lost_at: float | None = None
        self.recent_at = -math.inf
        """The objects are at least as recent as the storage at this time of `time.monotonic`."""

    def add_indexes(self, indexes: Mapping[str, Index[T]]) -> None:
        """Add these indexes; ValueError if there is another index with the same name."""
        self._store.add_indexes(indexes)

    # --- reading

    @property
    def synced(self) -> bool:
        """Whether the first list is complete."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return when the first list is complete."""
        await self._synced.wait()

    @property
    def missing(self) -> bool:
        """Whether the server has no such resource type; the cache keeps watching for it."""
        return self._missing

    @property
    def lost_for(self) -> float:
        """Seconds since the watch was lost; 0 while it is open."""
        return 0.0 if self._lost_at is None else time.monotonic() - self._lost_at

    async def wait_answered(self) -> None:
        """Return when the first list is complete, or the server has no such resource type."""
        await self._answered.wait()

    def get(self, key: Key) -> T | None:
        """The object, shared: do not change it."""
        return self._store.objects.get(key)

    def list(self) -> builtins.list[T]:
        """All objects, shared: do not change them."""
        return list(self._store.objects.values())

    def by_index(self, name: str, value: str) -> builtins.list[T]:
        """The objects that an index has under a value, shared: do not change them."""
        return self._store.by_index(name, value)

    def __len__(self) -> int:
        return len(self._store.objects)

    def subscribe(self, subscriber: Subscriber[T]) -> Callable[[], None]:
        """Call a function for each change, in the event loop, from now on.

        The objects that the cache already holds come first, as added. The function must be quick
        and must not raise. Call what is returned to end the subscription.
        """
        return self._store.subscribe(subscriber)

    # --- how recent the objects are; see `recency.py`

    @property
    def version(self) -> int:
        """The watch has sent everything up to this resource version."""
        return self._store.version

    def set_recent(self, at: float) -> None:
        """Note that the objects are as recent as the storage at that time."""
        self.recent_at = max(self.recent_at, at)

    async def wait_recent(self, since: float) -> None:
        """Return when the objects are known to be at least as recent as that."""
        while self.recent_at < since:
            self._refilled.clear()
            await self._refilled.wait()

    # --- our own writes; the client calls these while the cache runs

    def put(self, obj: T) -> None:
        """Store the answer to a write, if the cache selects the object and has no newer one."""
        if self._admits(obj):
            self._store.put(self._codec.trimmed(obj))

    def forget(self, key: Key, uid: str) -> None:
        """Remove an object that we deleted."""
        self._store.forget(key, uid)

    def _admits(self, obj: T) -> bool:
        """Whether the cache selects this object; False if unsure: the watch will send it."""
        try:
            key = self._codec.identify(obj)[0]
        except MALFORMED:
            return False
        only = self._only
        if (only.namespace and key.namespace != only.namespace) or (
            only.name and key.name != only.name
        ):
            return False
        if self._by_fields and key not in self._store.objects:
            return False
        return self._codec.wants(obj) and self._labels_match(self._codec.labels(obj))

    # --- events

    def _apply(self, events: Sequence[Event[T]]) -> None:
        """Apply events to the store; this is the hottest loop, so the common kind comes first."""
        store = self._store
        lean = self._codec.lean
        upsert = store.upsert if self._holds_all else self._upsert_wanted
        pending = iter(events)
        event: Event[T] | None = None
        while True:
            try:
                for event in pending:
                    if isinstance(event, (Modified, Added)):
                        upsert(lean(event.object))
                    elif isinstance(event, Deleted):
                        store.delete(lean(event.object))
                    elif isinstance(event, Bookmark):
                        store.advance(event.version)
                    elif isinstance(event, Failure):
                        raise error_from_status("WATCH", self._path, event.object)
                    else:
                        self._skip(event)
                break
            except MALFORMED as error:
                if event is None:
                    raise
                self._skip(self._codec.readable_part(event, error))

    def _upsert_wanted(self, obj: T) -> None:
        if self._codec.wants(obj):
            self._store.upsert(obj)
        else:
            self._store.advance(self._codec.identify(obj)[2])

    def _skip(self, event: UnreadableObject) -> None:
        """Apply what can be read of an unreadable event: a deletion, and the resource version."""
        if not event.identified:
            self._stale = True
            raise UnidentifiedEvent(f"WATCH {self._path}: an event does not say what it is about")
        if event.deleted:
            self._store.delete_key(event.key, event.version)
        else:
            self._store.advance(event.version)
