"""Reads objects, by resource: the half of a client that changes nothing.

Typed kinds come back as their types, foreign kinds as dictionaries.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import msgspec

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.kube.codec import (
    Bookmark,
    Codec,
    Event,
    Failure,
    LineSplitter,
    Listing,
    Unreadable,
)
from quarterdeck.kube.connection import Connection
from quarterdeck.kube.errors import UnexpectedAnswer, error_from_status
from quarterdeck.kube.metrics import RequestMetrics
from quarterdeck.kube.paths import collection, object_path, selectors
from quarterdeck.kube.transport import Request, Transport

T = TypeVar("T", bound="TypedObject | Object")

TIMEOUT = 30.0
LIST_TIMEOUT = 120.0
PAGE = 500
_WATCH_GRACE = 15.0
"""Seconds that a server may be late in ending a watch; less when the watch itself is short."""


class ListResult(msgspec.Struct, Generic[T], frozen=True):
    """The objects there were at one version; `unreadable` could not be decoded."""

    items: list[T]
    resource_version: str
    unreadable: list[Key] = []


class Reader:
    """Reads from one API server; close it, or use it as a context manager."""

    def __init__(
        self,
        connection: Connection,
        *,
        timeout: float = TIMEOUT,
        metrics: RequestMetrics | None = None,
    ) -> None:
        """Bound each request, with all its retries, by a time-out in seconds."""
        self.connection = connection
        self._timeout = timeout
        self._transport = Transport(connection, metrics=metrics)
        self._codecs: dict[tuple[str, str, type], Codec[Any]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        await self._transport.close()

    def server_time(self) -> datetime | None:
        """The server's time of day, to the second; None before its first answer to this client."""
        return self._transport.clock.now()

    async def get(self, resource: Resource[T], name: str, namespace: str = "") -> T:
        """The object, from the server."""
        path = object_path(resource, name, namespace)
        return self._decode(resource, await self._send("GET", path))

    async def list(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE,
        resource_version: str | None = None,
    ) -> ListResult[T]:
        """All objects, fetched in pages of `limit`; in one piece with 0.

        `resource_version` "0" takes what the server has in its cache, which may be old; a
        number asks for a state not older than it.
        """
        codec = self._codec(resource)
        pages = self.pages(
            codec,
            collection(resource, namespace),
            selectors(label_selector, field_selector),
            limit,
            resource_version,
        )
        items: list[T] = []
        unreadable: list[Key] = []
        version = ""
        async for page in pages:
            items += page.items
            unreadable += page.unreadable
            version = page.resource_version
        return ListResult(items, version, unreadable)

    async def pages(
        self,
        codec: Codec[T],
        path: str,
        query: Mapping[str, str],
        limit: int,
        resource_version: str | None,
    ) -> AsyncIterator[Listing[T]]:
        """The pages of a list as they come; all of them are of one version."""
        asked = dict(query)
        if limit:
            asked["limit"] = str(limit)
        if resource_version is not None:
            asked["resourceVersion"] = resource_version
        while True:
            request = Request(method="GET", path=path, query=asked)
            page = codec.listing(await self._transport.send(request, LIST_TIMEOUT))
            yield page
            if not page.next:
                return
            asked.pop("resourceVersion", None)
            asked["continue"] = page.next

    async def watch(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        name: str = "",
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str,
        timeout: float = 300,
    ) -> AsyncGenerator[Event[T], None]:
        """Events since a version, bookmarks left out, until the server ends it.

        A cache is what most callers want; this is one stream, and `Gone` or a lost connection
        are the caller's.
        """
        query = selectors(label_selector, field_selector, name)
        query["resourceVersion"] = resource_version
        path = collection(resource, namespace)
        codec = self._codec(resource)
        async with aclosing(self.lines(path, query, timeout)) as stream:
            async for lines in stream:
                for event in codec.events(lines):
                    if isinstance(event, Failure):
                        raise error_from_status("WATCH", path, event.object)
                    if not isinstance(event, Bookmark | Unreadable):
                        yield event

    async def lines(
        self, path: str, query: Mapping[str, str], timeout: float
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch, many at a time.

        The server is told to end the stream after `timeout` seconds; if it does not, it hangs,
        and the stream is cut.
        """
        asked = {
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, round(timeout))),
        }
        request = Request(method="GET", path=path, query=asked)
        splitter = LineSplitter()
        grace = min(_WATCH_GRACE, timeout)
        async with self._transport.stream(request, timeout + grace) as stream:
            async for chunk in stream:
                if lines := splitter.feed(chunk):
                    yield lines

    async def raw(self, path: str, *, accept: str = "") -> bytes:
        """The answer to a GET of any path, as it comes: `/version`, `/readyz`, discovery."""
        request = Request(method="GET", path=path, accept=accept)
        return await self._transport.send(request, self._timeout)

    # --- for those who write too

    async def _send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        request = Request(
            method=method, path=path, query=query or {}, body=body, content_type=content_type
        )
        return await self._transport.send(request, self._timeout)

    def _codec(self, resource: Resource[T]) -> Codec[T]:
        what = (*kind_of(resource), resource.type)
        return self._codecs.get(what) or self._codecs.setdefault(what, Codec(resource))

    def _decode(self, resource: Resource[T], body: bytes) -> T:
        try:
            return self._codec(resource).object(body)
        except msgspec.MsgspecError as error:
            raise UnexpectedAnswer(f"answer is not a {resource.kind}: {error}") from error


def kind_of(resource: Resource[Any]) -> tuple[str, str]:
    """What tells a kind from all others."""
    return resource.api_version, resource.plural
