"""Reads and writes objects, by resource.

Our own kinds come back typed, all others as dictionaries. A typed object drops fields that its type
does not have, so it is never sent back whole: writes are applies, patches, creates, and updates of
dictionaries. Caches that listen to this client get the answer to each write at once.
"""

from collections.abc import (
    AsyncGenerator,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import msgspec

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.kube.codec import Codec, LineSplitter
from quarterdeck.kube.connection import Connection
from quarterdeck.kube.errors import NotFound, UnexpectedAnswer, error_from_status, parse_status
from quarterdeck.kube.metrics import RequestMetrics
from quarterdeck.kube.paths import collection, object_path, selectors
from quarterdeck.kube.transport import HttpRequest, Transport
from quarterdeck.kube.watch_events import Bookmark, Event, Failure, ListPage, UnreadableObject

T = TypeVar("T", bound="TypedObject | Object")
T_contra = TypeVar("T_contra", bound="TypedObject | Object", contravariant=True)

TIMEOUT = 30.0
LIST_TIMEOUT = 120.0
PAGE_SIZE = 500
MAX_PAGES = 10_000
"""A list with more pages counts as endless: five million objects, with full pages."""
WATCH_END_GRACE_PERIOD = 15.0
"""Seconds that a server may be late in ending a watch; less for a short watch."""

Propagation = Literal["Background", "Foreground", "Orphan"]
_PATCH = {"merge": "application/merge-patch+json", "json": "application/json-patch+json"}
_APPLY = "application/apply-patch+yaml"
# For these subresources the answer is the object itself.
_WHOLE = ("", "status")


class ListResult(msgspec.Struct, Generic[T], frozen=True):
    """The objects at one resource version; those in `unreadable` could not be decoded."""

    items: list[T]
    resource_version: str
    unreadable: list[Key] = []


class WriteListener(Protocol[T_contra]):
    """Gets the answers to writes; a cache."""

    def put(self, obj: T_contra) -> None:
        """Take in an object as the server has it after a write."""

    def forget(self, key: Key, uid: str) -> None:
        """Remove an object that was deleted."""


class Client:
    """A client of one API server; close it, or use it as a context manager."""

    def __init__(
        self,
        connection: Connection,
        *,
        timeout: float = TIMEOUT,
        metrics: RequestMetrics | None = None,
    ) -> None:
        """Limit each request, with all its retries, to `timeout` seconds."""
        self.connection = connection
        self._timeout = timeout
        self._transport = Transport(connection, metrics=metrics)
        self._codecs: dict[tuple[str, str, type], Codec[Any]] = {}
        self._listeners: dict[tuple[str, str], list[tuple[Resource[Any], WriteListener[Any]]]] = {}

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

    def now(self) -> datetime:
        """The server's time of day; this machine's before its first answer to this client.

        For times that are written into objects or compared with them. It is up to a second behind:
        the date of an answer has whole seconds.
        """
        return self._transport.clock.now() or datetime.now(UTC)  # noqa: TID251 - no answer yet

    @property
    def before_write(self) -> Callable[[], None] | None:
        """Called right before a write is sent; an exception stops the write."""
        return self._transport.before_write

    @before_write.setter
    def before_write(self, check: Callable[[], None] | None) -> None:
        self._transport.before_write = check

    @contextmanager
    def listening(self, resource: Resource[T], listener: WriteListener[T]) -> Iterator[None]:
        """Pass the answer to each write of the resource to the listener while the context lasts."""
        listeners = self._listeners.setdefault(kind_of(resource), [])
        entry = (resource, listener)
        listeners.append(entry)
        try:
            yield
        finally:
            listeners.remove(entry)

    # --- reading

    async def get(self, resource: Resource[T], name: str, namespace: str = "") -> T:
        """The object, from the server."""
        path = object_path(resource, name, namespace)
        return self._decode(resource, await self._send("GET", path))

    async def find(self, resource: Resource[T], name: str, namespace: str = "") -> T | None:
        """The object, from the server; None if there is none."""
        try:
            return await self.get(resource, name, namespace)
        except NotFound:
            return None

    async def list(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE_SIZE,
        resource_version: str | None = None,
    ) -> ListResult[T]:
        """All objects, fetched in pages of `limit`; 0 fetches them in one piece.

        With `resource_version` "0" the server answers from its watch cache, which may be old; with
        a number the state is not older than that version.
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
    ) -> AsyncGenerator[ListPage[T], None]:
        """The pages of a list as they arrive; all are of one resource version."""
        asked = dict(query)
        if limit:
            asked["limit"] = str(limit)
        if resource_version is not None:
            asked["resourceVersion"] = resource_version
        for _ in range(MAX_PAGES):
            request = HttpRequest(method="GET", path=path, query=asked)
            page = codec.listing(await self._transport.send(request, LIST_TIMEOUT))
            yield page
            if not page.next:
                return
            if page.next == asked.get("continue"):
                raise UnexpectedAnswer(f"GET {path}: the list repeats a page")
            asked.pop("resourceVersion", None)
            asked["continue"] = page.next
        raise UnexpectedAnswer(f"GET {path}: the list does not end after {MAX_PAGES} pages")

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
        """The events since a resource version, without bookmarks, until the server ends the watch.

        Most callers use a cache instead: this is a single watch, and the caller handles `Gone` and
        lost connections.
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
                    if not isinstance(event, Bookmark | UnreadableObject):
                        yield event

    async def lines(
        self,
        path: str,
        query: Mapping[str, str],
        timeout: float,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch, several at a time.

        The request asks the server to end the watch after `timeout` seconds; if it does not, the
        connection is closed. `opened` is called when the server has accepted the watch: the first
        line may arrive much later.
        """
        asked = {
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, round(timeout))),
        }
        request = HttpRequest(method="GET", path=path, query=asked)
        splitter = LineSplitter()
        grace = min(WATCH_END_GRACE_PERIOD, timeout)
        async with self._transport.stream(request, timeout + grace) as stream:
            if opened is not None:
                opened()
            async for chunk in stream:
                if lines := splitter.feed(chunk):
                    yield lines
        if splitter.partial:
            raise UnexpectedAnswer(f"WATCH {path}: the stream ended inside an event")

    async def raw(self, path: str, *, accept: str = "") -> bytes:
        """The body of the answer to a GET of any path: `/version`, `/readyz`, discovery."""
        request = HttpRequest(method="GET", path=path, accept=accept, any_form=True)
        return await self._transport.send(request, self._timeout)

    async def text_lines(
        self, path: str, query: Mapping[str, str], timeout: float
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a text that the server sends bit by bit, such as the log of a container.

        The connection is closed after `timeout` seconds.
        """
        request = HttpRequest(method="GET", path=path, query=query, any_form=True)
        splitter = LineSplitter()
        async with self._transport.stream(request, timeout) as stream:
            async for chunk in stream:
                for line in splitter.feed(chunk).split(b"\n")[:-1]:
                    yield line

    # --- writing

    async def create(self, resource: Resource[T], obj: T | Object, *, field_manager: str = "") -> T:
        """Create an object and return it; `AlreadyExists` if there is one of that name."""
        namespace = _namespace_of(obj)
        if resource.namespaced and not namespace:
            raise ValueError(f"a {resource.kind} needs metadata.namespace to be created")
        path = collection(resource, namespace)
        body = msgspec.json.encode(obj)
        return await self._write(resource, "POST", path, body, query=_manager(field_manager))

    async def rehearse_create(
        self, resource: Resource[Any], obj: Object, *, field_manager: str = ""
    ) -> None:
        """Raise what the server would answer to a create; nothing is stored (a dry run)."""
        path = collection(resource, _namespace_of(obj))
        query = {**_manager(field_manager), "dryRun": "All"}
        await self._send("POST", path, msgspec.json.encode(obj), query)

    async def update(
        self, resource: Resource[T], obj: Object, *, subresource: str = "", field_manager: str = ""
    ) -> T:
        """Replace the whole object and return it; a dictionary, so that no field is lost."""
        meta = obj["metadata"]
        path = object_path(resource, meta["name"], meta.get("namespace", ""), subresource)
        query = _manager(field_manager)
        body = msgspec.json.encode(obj)
        return await self._write(resource, "PUT", path, body, query, subresource=subresource)

    async def patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Object | Sequence[Object],
        namespace: str = "",
        *,
        type: Literal["merge", "json"] = "merge",  # noqa: A002 the API's own word
        subresource: str = "",
        field_manager: str = "",
    ) -> T:
        """The object after a merge patch or a list of JSON patch operations.

        The server refuses a merge patch with `metadata.uid` and `metadata.resourceVersion` if the
        object is another one or has changed: `Conflict`.
        """
        return await self._write(
            resource,
            "PATCH",
            object_path(resource, name, namespace, subresource),
            msgspec.json.encode(patch),
            _manager(field_manager),
            subresource=subresource,
            content_type=_PATCH[type],
        )

    async def apply(
        self,
        resource: Resource[T],
        obj: Object,
        *,
        field_manager: str,
        force: bool = True,
        subresource: str = "",
    ) -> T:
        """The object after a server-side apply of exactly these fields.

        Fields applied before by the same manager and left out now are removed. With
        `metadata.uid` and `metadata.resourceVersion` a deleted object is not created again.
        """
        meta = obj["metadata"]
        path = object_path(resource, meta["name"], meta.get("namespace", ""), subresource)
        body = msgspec.json.encode(
            {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
        )
        query = {"fieldManager": field_manager, "force": "true" if force else "false"}
        return await self._write(
            resource, "PATCH", path, body, query, subresource=subresource, content_type=_APPLY
        )

    async def delete(
        self,
        resource: Resource[T],
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> T | None:
        """Delete an object; return None if it is gone, the object if its finalizers keep it.

        With a uid or resource version, only that very object is deleted; `Conflict` otherwise. Pods
        have a grace period; with 0 the server removes the object at once.
        """
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        wanted = {"uid": uid, "resourceVersion": resource_version}
        if preconditions := {field: value for field, value in wanted.items() if value}:
            options["preconditions"] = preconditions
        if propagation:
            options["propagationPolicy"] = propagation
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        path = object_path(resource, name, namespace)
        answer = await self._send("DELETE", path, msgspec.json.encode(options))
        status = parse_status(answer)
        if status is not None:
            if status.details and status.details.uid:
                for _, listener in self._listeners.get(kind_of(resource), ()):
                    listener.forget(Key(namespace, name), status.details.uid)
            return None
        # For some kinds the server answers with the object although it is gone, so listeners get
        # nothing.
        return self._decode(resource, answer)

    async def post(
        self, resource: Resource[T], name: str, subresource: str, body: Object, namespace: str = ""
    ) -> Object:
        """The answer of a subresource that acts: `token`, `eviction`, `binding`."""
        path = object_path(resource, name, namespace, subresource)
        answer = await self._send("POST", path, msgspec.json.encode(body))
        try:
            return msgspec.json.decode(answer, type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise UnexpectedAnswer(f"POST {path}: answer is not an object: {error}") from error

    # --- helpers

    async def _send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        request = HttpRequest(
            method=method, path=path, query=query or {}, body=body, content_type=content_type
        )
        return await self._transport.send(request, self._timeout)

    def _codec(self, resource: Resource[T]) -> Codec[T]:
        what = (*kind_of(resource), resource.type)
        return self._codecs.get(what) or self._codecs.setdefault(what, Codec(resource))

    def _decode(self, resource: Resource[T], body: bytes, subresource: str = "") -> T:
        codec = self._codec(resource)
        try:
            obj = codec.object(body)
        except msgspec.MsgspecError as error:
            raise UnexpectedAnswer(f"answer is not a {resource.kind}: {error}") from error
        if subresource in _WHOLE and (found := codec.other_kind(obj)):
            raise UnexpectedAnswer(f"answer is not a {resource.kind}, but {found}")
        return obj

    async def _write(
        self,
        resource: Resource[T],
        method: str,
        path: str,
        body: bytes,
        query: Mapping[str, str],
        *,
        subresource: str = "",
        content_type: str = "application/json",
    ) -> T:
        answer = await self._send(method, path, body, query, content_type)
        obj = self._decode(resource, answer, subresource)
        if subresource in _WHOLE:
            for theirs, listener in self._listeners.get(kind_of(resource), ()):
                if theirs.type is resource.type:
                    listener.put(obj)
                else:
                    # An answer that a listener cannot decode reaches it through its watch.
                    with suppress(UnexpectedAnswer):
                        listener.put(self._decode(theirs, answer))
        return obj


def kind_of(resource: Resource[Any]) -> tuple[str, str]:
    """What identifies a kind."""
    return resource.api_version, resource.plural


def _namespace_of(obj: "TypedObject | Object") -> str:
    if isinstance(obj, dict):
        namespace: str = obj["metadata"].get("namespace", "")
        return namespace
    return obj.metadata.namespace


def _manager(field_manager: str) -> dict[str, str]:
    return {"fieldManager": field_manager} if field_manager else {}
