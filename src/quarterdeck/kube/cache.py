"""Keeps the objects of one resource in memory, current by a watch.

The watch itself starts with all objects; if the server cannot do that, they are listed.

`cached_objects` has the part for readers, who share the objects and must not change them. This loop
decides when to list again, when to reopen the watch, and how long to wait in between.
"""

import asyncio
import math
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import NoReturn, TypeVar

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.backoff import Backoff, Retries
from quarterdeck.kube.cached_objects import CachedObjects, UnidentifiedEvent
from quarterdeck.kube.client import Client
from quarterdeck.kube.codec import Codec
from quarterdeck.kube.collector import collector_paused
from quarterdeck.kube.discovery import is_served
from quarterdeck.kube.errors import ApiError, Gone, KubeError, NotFound
from quarterdeck.kube.snapshot import (
    STREAM_QUERY,
    Snapshot,
    cannot_stream,
    from_list,
    from_stream,
    storage_version,
)
from quarterdeck.kube.store import Index
from quarterdeck.log import get_logger

log = get_logger("kube.cache")

T = TypeVar("T", bound="TypedObject | Object")

WATCH_TIMEOUT = 60.0
"""The least seconds after which the server ends a watch; up to half as much is added at random.

The cache notices a server that hangs because it does not end the watch: a resource without changes
sends nothing else. So this bounds how old a cache can get unnoticed. Opening a watch again costs
one request, on the same connection.
"""
MAX_RETRY_DELAY = 30.0
"""The most seconds between two attempts, whatever Retry-After the server sends."""
RETRY_BACKOFF = Backoff(base=0.2, limit=MAX_RETRY_DELAY, jitter=0.5)
"""The waits between lists or watches that fail."""
UNIDENTIFIED_EVENT_BACKOFF = Backoff(base=1.0, limit=60.0, jitter=0.5)
"""The waits between watches that are given up because of an event without an identity."""
SHORT_WATCH = 1.0
"""A watch that ends within so many seconds is not reopened at once."""
SHORT_OUTAGE = 2.0
"""Seconds without a watch that do not count as an outage, because it was only reopened."""
WATCH_GRACE_PERIOD = 30.0
"""Seconds without a watch after which the objects of a cache count as old."""
MAX_MISSING_DELAY = 5.0
"""The most seconds between two requests for a resource type that the server does not have."""


class Cache(CachedObjects[T]):
    """The objects of one resource and selection, kept as the server has them."""

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
        """Hold the objects that the selectors select.

        `name` selects a single object. The cache keeps only the managedFields of `own_manager`,
        unless `keep_all_managed_fields` is set. `wanted` selects objects by key, if no selector
        can: the server sends the others too, and the cache drops them.
        """
        managers = [own_manager] if isinstance(own_manager, str) else own_manager or ()
        super().__init__(
            Codec(resource, managers=None if keep_all_managed_fields else managers, wanted=wanted),
            resource,
            only=Key(namespace, name),
            label_selector=label_selector,
            field_selector=field_selector,
            indexes=indexes,
            holds_all=wanted is None,
        )
        self._client = client
        self._watch_timeout = watch_timeout
        self._backoff = Retries(RETRY_BACKOFF)
        self._unidentified = Retries(UNIDENTIFIED_EVENT_BACKOFF)
        self._short_watch = Retries(RETRY_BACKOFF)
        self._opened_at = -math.inf
        self._streams = True  # whether the watch starts with all objects
        self._not_found = 0  # times in a row
        self.trouble = ""
        """Why the last list or watch failed, in one line; empty if it did not."""
        self.watched_since = time.monotonic()
        """The monotonic time of the end of the last outage that was longer than `SHORT_OUTAGE`."""
        self._filling_since: float | None = None
        self._minimum_version = (0, -math.inf)  # of the storage, and when it was requested
        self._turn: asyncio.Timeout | None = None

    def reset(self) -> None:
        """Drop all objects, as before the first list; call it only if the cache does not run."""
        self._store.clear()
        self._stale = True
        self._missing = False
        self._lost_at = None
        self._not_found = 0
        self.trouble = ""
        self.recent_at = -math.inf
        self._synced.clear()
        self._answered.clear()

    # --- for `recency.py`

    async def storage_version(self) -> int:
        """The current resource version of the storage, from a list of one object."""
        return await storage_version(self._client, self._codec, self._path, self._query)

    def list_again(self, since: float, version: int, asked: float) -> None:
        """Get all objects again at once, unless that was started at `since` or later.

        `version` is that of the storage at the time `asked`; the objects must not be older.
        """
        self._minimum_version = (version, asked)
        if self._filling_since is not None and self._filling_since >= since:
            return
        self._stale = True
        if self._turn is not None and not self._turn.expired():
            self._turn.reschedule(0.0)

    # --- the loop

    async def run(self) -> NoReturn:
        """Keep the objects current until cancelled; log each failure, back off and try again."""
        with self._client.listening(self.resource, self):
            while True:
                try:
                    async with asyncio.timeout(None) as turn:
                        self._turn = turn
                        await self._take_turn()
                except TimeoutError:
                    if not turn.expired():
                        raise
                    # `list_again` ends a watch that may be silent, or a wait.
                finally:
                    self._turn = self._filling_since = None

    async def _take_turn(self) -> None:
        """Fill the cache if necessary, apply events until the watch ends, wait after an error."""
        try:
            if self._stale and not self._streams:
                await self._list()
            await self._watch()
        except KubeError as error:
            self._filling_since = None
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
            self._not_found += 1
            if await self._believed_missing():
                self._note_missing(error)
                await asyncio.sleep(min(MAX_MISSING_DELAY, self._backoff.next()))
                return
        else:
            self._not_found = 0
        # A request for all objects has no version that could be too old.
        if isinstance(error, Gone) and not self._stale:
            # The server answers: the failures before say nothing about the list that is due.
            self._backoff.reset()
            self._stale = True
            log.v(4).info("watch is too old, listing again", resource=self.resource.plural)
        else:
            self.trouble = str(error)
            if self._lost_at is None:
                self._lost_at = time.monotonic()
            # A repeated refusal that is not about load may be about our resource version.
            refused = isinstance(error, ApiError) and error.code not in (429, 503)
            self._stale |= refused and self._backoff.failures >= 2
            log.warning(
                "list or watch failed, will try again",
                resource=self.resource.plural,
                error=str(error),
            )
        asked = min(MAX_RETRY_DELAY, error.retry_after) if isinstance(error, ApiError) else 0.0
        if isinstance(error, UnidentifiedEvent):
            # Each good event resets the back-off, so these errors have one of their own.
            asked = self._unidentified.next()
        await asyncio.sleep(max(asked, self._backoff.next(), self._short_watch_delay()))

    def _short_watch_delay(self) -> float:
        """Seconds to wait if the watch that ended was a short one; 0 otherwise.

        Each good event resets the back-off, so watches that send some and end at once have one of
        their own.
        """
        opened, self._opened_at = self._opened_at, -math.inf
        if time.monotonic() - opened < min(SHORT_WATCH, self._watch_timeout / 2):
            return self._short_watch.next()
        if math.isfinite(opened):
            self._short_watch.reset()
        return 0.0

    async def _believed_missing(self) -> bool:
        """Whether the server has no such resource type, after two 404 answers in a row.

        A type that was served before is gone only if discovery does not list it either: a proxy can
        answer 404, and then every object would be reported as deleted.
        """
        if self._missing or self._not_found < 2 or not self.synced:
            return self._missing or self._not_found >= 2
        try:
            return not await is_served(self._client, self.resource)
        except KubeError as error:
            log.v(4).info("discovery failed", resource=self.resource.plural, error=str(error))
            return False

    def _note_missing(self, error: NotFound) -> None:
        """Drop all objects, because the server has no such resource type."""
        say = log.v(4).info if self._missing else log.warning
        say("resource type is not installed, watching for it", resource=self.resource.plural)
        self.trouble = str(error)
        self._missing = self._stale = True
        self._lost_at = None  # the server answers, so the watch is not lost
        self._store.replace((), self._store.version)
        self._answered.set()

    async def _list(self) -> None:
        self._filling_since = time.monotonic()
        version, asked = self._minimum_version
        with collector_paused():
            known = max(self._store.version, version)
            snapshot = await from_list(self._client, self._codec, self._path, self._query, known)
            # The list is from the server's watch cache, which may be old: compare it with the
            # storage.
            proven = bool(version) and snapshot.version >= version
            self._replace(snapshot, asked if proven else -math.inf)

    async def _fill(self, stream: AsyncGenerator[bytes, None], started: float) -> None:
        with collector_paused():
            snapshot, rest = await from_stream(stream, self._codec, self._path)
            self._replace(snapshot, started)
        self._apply(rest)
        self._recovered()

    def _replace(self, snapshot: Snapshot[T], recent_at: float) -> None:
        """Replace all objects by those of a snapshot, which is as recent as that time."""
        self._store.replace(snapshot.objects.values(), snapshot.version, snapshot.unreadable)
        self._stale = False
        self._streams = True
        self.trouble = ""
        self._missing = False
        self._filling_since = None
        self._minimum_version = (0, -math.inf)
        self.set_recent(recent_at)
        self._refilled.set()
        self._synced.set()
        self._answered.set()
        log.v(2).info("cache filled", resource=self.resource.plural, objects=len(self))

    async def _watch(self) -> None:
        """Apply events until the server ends the watch; raise if it breaks."""
        lasting = self._watch_timeout * (1 + random.random() / 2)  # noqa: S311 jitter
        query = STREAM_QUERY if self._stale else {"resourceVersion": str(self._store.version)}
        started = time.monotonic()
        if self._stale:
            self._filling_since = started
        async with aclosing(
            self._client.lines(self._path, {**self._query, **query}, lasting, self._opened)
        ) as stream:
            if self._stale:
                await self._fill(stream, started)
            async for lines in stream:
                self._apply(self._codec.events(lines))
                self._recovered()
        if delay := self._short_watch_delay():
            # Something ends our watches at once: do not flood the server with requests.
            await asyncio.sleep(max(delay, self._backoff.next()))
        else:
            self._recovered()
            self._unidentified.reset()

    def _opened(self) -> None:
        """Note that the watch is open, and the end of an outage."""
        if self.lost_for > SHORT_OUTAGE or not self.synced:
            self.watched_since = time.monotonic()
        self._lost_at = None
        self._opened_at = time.monotonic()

    def _recovered(self) -> None:
        self._backoff.reset()
        self._not_found = 0
        self.trouble = ""
