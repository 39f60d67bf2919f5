"""All objects of a resource at one version, from a watch that starts with them or from a list.

The watch (a "streaming list") is the first choice. It is as recent as a read from the storage, as
quick as a list, and needs less memory: the bytes of a list are held beside the objects. Not every
server supports it; `cannot_stream` recognises the errors of those that do not.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from quarterdeck.api.meta import Key, Object, TypedObject
from quarterdeck.kube.client import PAGE_SIZE, Client
from quarterdeck.kube.codec import MALFORMED, Codec
from quarterdeck.kube.errors import (
    ApiError,
    ConnectionFailed,
    Gone,
    KubeError,
    RequestTimeout,
    ServerError,
    UnexpectedAnswer,
    error_from_status,
)
from quarterdeck.kube.watch_events import (
    Added,
    Bookmark,
    Deleted,
    Event,
    Failure,
    ListPage,
    Modified,
    UnreadableObject,
)
from quarterdeck.log import get_logger

log = get_logger("kube.cache")

T = TypeVar("T", bound="TypedObject | Object")

STREAM_QUERY = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
"""Makes a watch start with all objects; without a resourceVersion it is as recent as the
storage."""
SILENCE_TIMEOUT = 10.0
"""Seconds without a byte of the initial objects after which a list is tried instead."""


class Snapshot(Generic[T]):
    """Collects the objects as they arrive. Pure."""

    def __init__(self, codec: Codec[T]) -> None:
        self.objects: dict[Key, T] = {}
        self.unreadable: set[Key] = set()
        """The keys of objects that could not be decoded."""
        self.version = 0
        """The resource version of the snapshot, once it is complete."""
        self.complete = False
        self._codec = codec

    def add_page(self, page: ListPage[T]) -> None:
        """Add the objects of one page of a list."""
        identify = self._codec.identify
        for obj in page.items:
            try:
                self.objects[identify(obj)[0]] = obj
            except MALFORMED as error:
                self.unreadable.add(self._codec.log_malformed(obj, error))
        self.unreadable.update(page.unreadable)
        self.version, self.complete = int(page.resource_version), not page.next

    def add_events(self, events: Sequence[Event[T]]) -> Sequence[Event[T]]:
        """Add the objects of these events; return the events after the end of the snapshot."""
        for number, event in enumerate(events):
            if isinstance(event, Failure):
                return events[number:]
            if isinstance(event, Bookmark):
                if event.ends_initial_events:
                    self.version, self.complete = event.version, True
                    return events[number + 1 :]
            else:
                try:
                    self._add(event)
                except MALFORMED as error:
                    self._add(self._codec.readable_part(event, error))
        return ()

    def _add(self, event: Added[T] | Modified[T] | Deleted[T] | UnreadableObject) -> None:
        if isinstance(event, (Added, Modified)):
            self._hold(event.object)
        elif isinstance(event, Deleted):
            self._drop(self._codec.identify(event.object)[0])
        elif not event.key.name:
            raise UnexpectedAnswer("an event does not say which object it is about")
        elif event.deleted:
            self._drop(event.key)
        else:
            self.unreadable.add(event.key)

    def _hold(self, obj: T) -> None:
        if self._codec.wants(obj):
            key = self._codec.identify(obj)[0]
            self.objects[key] = self._codec.lean(obj)
            self.unreadable.discard(key)

    def _drop(self, key: Key) -> None:
        self.objects.pop(key, None)
        self.unreadable.discard(key)


async def from_stream(
    stream: AsyncGenerator[bytes, None], codec: Codec[T], path: str
) -> tuple[Snapshot[T], Sequence[Event[T]]]:
    """The snapshot from the start of a watch, and the events that arrived after it."""
    snapshot = Snapshot(codec)
    while True:
        try:
            async with asyncio.timeout(SILENCE_TIMEOUT):
                lines = await anext(stream)
        except TimeoutError:
            why = f"objects are missing, and nothing came for {SILENCE_TIMEOUT:.0f} s"
            raise RequestTimeout("WATCH", path, why, sent=True) from None
        except StopAsyncIteration:
            why = "the stream ended before all objects were sent"
            raise ConnectionFailed("WATCH", path, why, sent=True) from None
        rest = snapshot.add_events(codec.events(lines))
        if snapshot.complete:
            return snapshot, rest
        if rest and isinstance(rest[0], Failure):
            raise error_from_status("WATCH", path, rest[0].object)


def cannot_stream(error: KubeError) -> bool:
    """Whether to try a list after this error of a watch that starts with all objects.

    Servers that do not support it refuse the request. Servers whose storage cannot report its
    progress fail inside the stream. Others ignore the parameters, and never send the end of the
    initial objects. A server that has just learnt of a kind answers 429 for a second.
    """
    refused = isinstance(error, ApiError) and error.code in (400, 422, 429, 500)
    return refused or isinstance(error, RequestTimeout)


async def from_list(
    client: Client, codec: Codec[T], path: str, query: Mapping[str, str], known: int
) -> Snapshot[T]:
    """All objects from a list, at a version not older than `known`."""

    async def fetch(limit: int, version: str | None) -> Snapshot[T]:
        snapshot = Snapshot(codec)
        async for page in client.pages(codec, path, query, limit, version):
            snapshot.add_page(page)
        return snapshot

    try:
        return await fetch(limit=0, version=str(known))
    except ServerError as error:
        if error.code != 504:
            raise
        # Our version is in the future for the server: its storage was restored from a backup.
        log.warning("server is behind, listing its storage", path=path)
    try:
        return await fetch(limit=PAGE_SIZE, version=None)
    except Gone:  # the storage was compacted between two pages
        return await fetch(limit=0, version=None)


async def storage_version(
    client: Client, codec: Codec[T], path: str, query: Mapping[str, str]
) -> int:
    """The current version of the storage, from a list of one object."""
    async with aclosing(client.pages(codec, path, query, limit=1, resource_version=None)) as pages:
        return int((await anext(pages)).resource_version)
