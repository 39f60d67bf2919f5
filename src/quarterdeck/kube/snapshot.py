"""All objects of a resource at one version: from a watch that begins with them, or from a list.

The watch (a "streaming list") is first choice. It is as recent as a read from the storage, as quick
as a list, and needs no more memory than the objects do, where a list is held as bytes beside them.
Not every server can do it, and those that cannot show it in different ways: `cannot_stream`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Generic, TypeVar

from quarterdeck.api.meta import Key, Object, TypedObject
from quarterdeck.kube.client import PAGE, Client
from quarterdeck.kube.codec import (
    MALFORMED,
    Added,
    Bookmark,
    Codec,
    Deleted,
    Event,
    Failure,
    Listing,
    Modified,
    Unreadable,
)
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
from quarterdeck.log import get_logger

log = get_logger("kube.cache")

T = TypeVar("T", bound="TypedObject | Object")

STREAM_QUERY = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
"""Makes a watch begin with all objects; no resourceVersion, so as recent as the storage."""
SILENCE = 10.0
"""Seconds without a byte after which a server that owes us objects is asked for a list instead."""


class Snapshot(Generic[T]):
    """The objects, as far as they have come. Pure."""

    def __init__(self, codec: Codec[T]) -> None:
        self.objects: dict[Key, T] = {}
        self.unreadable: set[Key] = set()
        """Those that could not be decoded."""
        self.version = 0
        """The version of the whole, when it is complete."""
        self.complete = False
        self._codec = codec

    def take_page(self, page: Listing[T]) -> None:
        """Gather from one page of a list."""
        identify = self._codec.identify
        for obj in page.items:
            try:
                self.objects[identify(obj)[0]] = obj
            except MALFORMED as error:
                self.unreadable.add(self._codec.name_malformed(obj, error))
        self.unreadable.update(page.unreadable)
        self.version, self.complete = int(page.resource_version), not page.next

    def take(self, events: Sequence[Event[T]]) -> Sequence[Event[T]]:
        """Gather from some events; given back are those that come after the last object."""
        for number, event in enumerate(events):
            if isinstance(event, Failure):
                return events[number:]
            if isinstance(event, Bookmark):
                if event.ends_initial_events:
                    self.version, self.complete = event.version, True
                    return events[number + 1 :]
            else:
                try:
                    self._take_one(event)
                except MALFORMED as error:
                    self._take_one(self._codec.salvaged(event, error))
        return ()

    def _take_one(self, event: Added[T] | Modified[T] | Deleted[T] | Unreadable) -> None:
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
    """All objects from the start of a watch, and the events after them that came along."""
    snapshot = Snapshot(codec)
    while True:
        try:
            async with asyncio.timeout(SILENCE):
                lines = await anext(stream)
        except TimeoutError:
            why = f"objects are missing, and nothing came for {SILENCE:.0f} s"
            raise RequestTimeout("WATCH", path, why, sent=True) from None
        except StopAsyncIteration:
            why = "the stream ended before all objects were sent"
            raise ConnectionFailed("WATCH", path, why, sent=True) from None
        rest = snapshot.take(codec.events(lines))
        if snapshot.complete:
            return snapshot, rest
        if rest and isinstance(rest[0], Failure):
            raise error_from_status("WATCH", path, rest[0].object)


def cannot_stream(error: KubeError) -> bool:
    """Whether a list may do where a watch that begins with all objects failed.

    Servers that do not know it refuse the request; those whose storage cannot tell how recent
    their memory is fail inside the stream; others ignore the wish, and never say that it is done.
    And one that has just learnt of a kind is not ready to watch it for a second, and says 429.
    """
    refused = isinstance(error, ApiError) and error.code in (400, 422, 429, 500)
    return refused or isinstance(error, RequestTimeout)


async def from_list(
    client: Client, codec: Codec[T], path: str, query: Mapping[str, str], known: int
) -> Snapshot[T]:
    """All objects from a list, of the server's memory if that is not older than what is known."""

    async def fetch(limit: int, version: str | None) -> Snapshot[T]:
        snapshot = Snapshot(codec)
        async for page in client.pages(codec, path, query, limit, version):
            snapshot.take_page(page)
        return snapshot

    try:
        return await fetch(limit=0, version=str(known))
    except ServerError as error:
        if error.code != 504:
            raise
        # The server says that our version is in the future: its history was rewound.
        log.warning("server is behind, listing its storage", path=path)
    try:
        return await fetch(limit=PAGE, version=None)
    except Gone:  # the storage was compacted between two pages
        return await fetch(limit=0, version=None)


async def storage_version(
    client: Client, codec: Codec[T], path: str, query: Mapping[str, str]
) -> int:
    """The version that the storage is at, from a list of one object that is read from it."""
    async with aclosing(client.pages(codec, path, query, limit=1, resource_version=None)) as pages:
        return int((await anext(pages)).resource_version)
