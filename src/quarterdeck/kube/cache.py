"""Follows one resource: all its objects, then a watch from there, for as long as it runs.

The objects come at the start of the watch itself; a server that cannot do so is asked for a list.

The decisions are in `store`; this is the loop around it: when to list again, when to reopen the
watch, how long to wait in between. Everything the cache hands out is shared with all its other
users: **do not change an object that you got from a cache**; copy it first.
"""

import asyncio
import builtins
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Generic, NoReturn, TypeVar

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.kube.backoff import Backoff
from quarterdeck.kube.client import Client
from quarterdeck.kube.codec import (
    Added,
    Bookmark,
    Codec,
    Deleted,
    Event,
    Failure,
    Modified,
)
from quarterdeck.kube.collector import collector_paused
from quarterdeck.kube.errors import (
    ApiError,
    Gone,
    KubeError,
    NotFound,
    error_from_status,
)
from quarterdeck.kube.paths import collection, selectors
from quarterdeck.kube.selector import parse_selector
from quarterdeck.kube.snapshot import (
    STREAM_QUERY,
    Snapshot,
    cannot_stream,
    from_list,
    from_stream,
)
from quarterdeck.kube.store import Index, Store, Subscriber
from quarterdeck.log import get_logger

log = get_logger("kube.cache")

T = TypeVar("T", bound="TypedObject | Object")

WATCH_TIMEOUT = 300.0
"""Seconds after which the server ends a watch, at least; up to half as much is added at random."""
MISSING_PAUSE = 5.0
"""The most seconds between two looks for a resource type that the server does not have."""


class Cache(Generic[T]):
    """The objects of one resource, as the server has them; one per resource and selector."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        namespace: str = "",
        name: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, Index[T]] | None = None,
        own_manager: str | Sequence[str] | None = None,
        keep_all_managed_fields: bool = False,
        wanted: Callable[[Key], bool] | None = None,
        watch_timeout: float = WATCH_TIMEOUT,
    ) -> None:
        """Follow what the selectors let through.

        `name` makes it a watch of a single object. Of managedFields only the entries of
        `own_manager` are kept, unless all are asked for. `wanted` says by their keys which
        objects are held, for wishes that no selector can express: the others come over the
        wire and are dropped.
        """
        managers = [own_manager] if isinstance(own_manager, str) else own_manager or ()
        self.resource = resource
        self._codec = Codec(
            resource, managers=None if keep_all_managed_fields else managers, wanted=wanted
        )
        self._holds_all = wanted is None
        self._store: Store[T] = Store(self._codec.identify, indexes)
        self._client = client
        self._path = collection(resource, namespace)
        self._query = selectors(label_selector, field_selector, name)
        self._only = Key(namespace, name)
        self._labels_match = parse_selector(label_selector)
        self._by_fields = bool(field_selector)
        self._watch_timeout = watch_timeout
        self._backoff = Backoff(0.2, 30.0)
        self._stale = True  # what is held does not connect to a watch: all objects are needed
        self._streams = True  # they are asked for by the watch itself
        self._synced = asyncio.Event()
        self._answered = asyncio.Event()
        self._missing = False
        self.trouble = ""
        """Why the server could not be followed last time, in one line; empty if it could."""

    def add_indexes(self, indexes: Mapping[str, Index[T]]) -> None:
        """Index by these functions too; one of the same name is replaced."""
        self._store.add_indexes(indexes)

    # --- reading

    @property
    def synced(self) -> bool:
        """Whether the first list is in."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return when the first list is in."""
        await self._synced.wait()

    @property
    def missing(self) -> bool:
        """Whether the server said last that it has no such resource type; it is looked for on."""
        return self._missing

    async def wait_answered(self) -> None:
        """Return when the first list is in, or the server has no such resource type."""
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

    def subscribe(self, subscriber: Subscriber[T]) -> None:
        """Call a function for each change, in the event loop, from now on.

        What is held already comes first, as added. It must be quick and must not raise.
        """
        self._store.subscribe(subscriber)

    # --- our own writes; the client calls these while the cache runs

    def put(self, obj: T) -> None:
        """Take the answer to a write, unless something newer is known or it is not ours."""
        if self._admits(obj):
            self._store.put(self._codec.trimmed(obj))

    def forget(self, key: Key, uid: str) -> None:
        """Take it that an object was deleted by us."""
        self._store.forget(key, uid)

    def _admits(self, obj: T) -> bool:
        """Whether the server would send us this object; when unsure, the watch decides."""
        key = self._codec.identify(obj)[0]
        only = self._only
        if (only.namespace and key.namespace != only.namespace) or (
            only.name and key.name != only.name
        ):
            return False
        if self._by_fields and key not in self._store.objects:
            return False
        return self._codec.wants(obj) and self._labels_match(self._codec.labels(obj))

    # --- following

    async def run(self) -> NoReturn:
        """Follow the server until cancelled; faults are logged, waited out and recovered from."""
        with self._client.listening(self.resource, self):
            while True:
                try:
                    if self._stale and not self._streams:
                        await self._list()
                    await self._watch()
                except KubeError as error:
                    if self._stale and self._streams and cannot_stream(error):
                        self._streams = False
                        log.v(4).info(
                            "watch does not begin with all objects, listing them",
                            resource=self.resource.plural,
                            error=str(error),
                        )
                    else:
                        await self._wait_after(error)

    async def _wait_after(self, error: KubeError) -> None:
        if isinstance(error, NotFound):
            self._note_missing(error)
            await asyncio.sleep(min(MISSING_PAUSE, self._backoff.next()))
            return
        if isinstance(error, Gone):
            self._stale = True
            log.v(4).info("watch is too old, listing again", resource=self.resource.plural)
        else:
            self.trouble = str(error)
            # A refusal that keeps coming back, and is not about load, may be about our version.
            refused = isinstance(error, ApiError) and error.code not in (429, 503)
            self._stale |= refused and self._backoff.failures >= 2
            log.warning(
                "cache lost its server, will try again",
                resource=self.resource.plural,
                error=str(error),
            )
        asked = error.retry_after if isinstance(error, ApiError) else 0.0
        await asyncio.sleep(max(asked, self._backoff.next()))

    def _note_missing(self, error: NotFound) -> None:
        """Take it that there are no objects, because there is no such type."""
        say = log.v(4).info if self._missing else log.warning
        say("resource type is not there, looking for it", resource=self.resource.plural)
        self.trouble = str(error)
        self._missing = self._stale = True
        self._store.replace((), self._store.version)
        self._answered.set()

    async def _list(self) -> None:
        with collector_paused():
            snapshot = await from_list(
                self._client, self._codec, self._path, self._query, self._store.version
            )
            self._replace(snapshot)

    async def _fill(self, stream: AsyncGenerator[bytes, None]) -> None:
        with collector_paused():
            snapshot, rest = await from_stream(stream, self._codec, self._path)
            self._replace(snapshot)
        self._apply(rest)

    def _replace(self, snapshot: Snapshot[T]) -> None:
        """Take it that these are all objects there are."""
        self._store.replace(snapshot.objects.values(), snapshot.version, snapshot.unreadable)
        self._stale = False
        self._streams = True
        self.trouble = ""
        self._missing = False
        self._synced.set()
        self._answered.set()
        log.v(2).info("cache filled", resource=self.resource.plural, objects=len(self))

    async def _watch(self) -> None:
        """Take events until the stream ends; returns when the server ended it in order."""
        lasting = self._watch_timeout * (1 + random.random() / 2)  # noqa: S311 jitter
        query = STREAM_QUERY if self._stale else {"resourceVersion": str(self._store.version)}
        started = time.monotonic()
        async with aclosing(
            self._client.lines(self._path, {**self._query, **query}, lasting)
        ) as stream:
            if self._stale:
                await self._fill(stream)
            async for lines in stream:
                self._apply(self._codec.events(lines))
        if time.monotonic() - started < min(1.0, self._watch_timeout / 2):
            # Somebody ends our watches at once: do not make a storm of it.
            await asyncio.sleep(self._backoff.next())
        else:
            self._recovered()

    def _upsert_wanted(self, obj: T) -> None:
        if self._codec.wants(obj):
            self._store.upsert(obj)
        else:
            self._store.advance(self._codec.identify(obj)[2])

    def _recovered(self) -> None:
        self._backoff.reset()
        self.trouble = ""

    def _apply(self, events: Sequence[Event[T]]) -> None:
        """Take some events; this is the inner loop of everything, so the common kind is first."""
        store = self._store
        lean = self._codec.lean
        upsert = store.upsert if self._holds_all else self._upsert_wanted
        for event in events:
            if isinstance(event, (Modified, Added)):
                upsert(lean(event.object))
            elif isinstance(event, Deleted):
                store.delete(lean(event.object))
            elif isinstance(event, Bookmark):
                store.advance(event.version)
            elif isinstance(event, Failure):
                raise error_from_status("WATCH", self._path, event.object)
            elif event.deleted:
                store.delete_key(event.key, event.version)
            else:
                store.advance(event.version)
        self._recovered()
