"""Reads and writes objects, by resource.

Typed kinds come back as their types, foreign kinds as dictionaries. A typed object drops fields
that its type does not know, so it is never sent back whole: writes are applies, patches, creates,
and updates of plain dictionaries. Caches that follow a resource through this client are told the
answer to each write at once.
"""

from collections.abc import (
    AsyncGenerator,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager, suppress
from datetime import datetime
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

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
from quarterdeck.kube.errors import UnexpectedAnswer, error_from_status, parse_status
from quarterdeck.kube.metrics import RequestMetrics
from quarterdeck.kube.paths import collection, object_path, selectors
from quarterdeck.kube.transport import Request, Transport

T = TypeVar("T", bound="TypedObject | Object")
T_contra = TypeVar("T_contra", bound="TypedObject | Object", contravariant=True)

TIMEOUT = 30.0
LIST_TIMEOUT = 120.0
PAGE = 500
MOST_PAGES = 10_000
"""Pages of a list after which it is taken for endless: five million objects, with full pages."""
WATCH_GRACE = 15.0
"""Seconds that a server may be late in ending a watch; less when the watch itself is short."""

Propagation = Literal["Background", "Foreground", "Orphan"]
_PATCH = {"merge": "application/merge-patch+json", "json": "application/json-patch+json"}
_APPLY = "application/apply-patch+yaml"
# Answers with these subresources are the object itself.
_WHOLE = ("", "status")


class ListResult(msgspec.Struct, Generic[T], frozen=True):
    """The objects there were at one version; `unreadable` could not be decoded."""

    items: list[T]
    resource_version: str
    unreadable: list[Key] = []


class WriteListener(Protocol[T_contra]):
    """Somebody who wants the answers to writes; a cache."""

    def put(self, obj: T_contra) -> None:
        """An object as the server has it after a write."""

    def forget(self, key: Key, uid: str) -> None:
        """An object that is gone after a delete."""


class Client:
    """A client of one API server; close it, or use it as a context manager."""

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

    def server_time(self) -> datetime | None:
        """The server's time of day, to the second; None before its first answer to this client."""
        return self._transport.clock.now()

    @property
    def before_write(self) -> Callable[[], None] | None:
        """Called right before a write goes onto its connection; what it raises stops the write."""
        return self._transport.before_write

    @before_write.setter
    def before_write(self, check: Callable[[], None] | None) -> None:
        self._transport.before_write = check

    @contextmanager
    def listening(self, resource: Resource[T], listener: WriteListener[T]) -> Iterator[None]:
        """Tell a listener the answer to each write of a resource, while the context lasts."""
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
    ) -> AsyncGenerator[Listing[T], None]:
        """The pages of a list as they come; all of them are of one version."""
        asked = dict(query)
        if limit:
            asked["limit"] = str(limit)
        if resource_version is not None:
            asked["resourceVersion"] = resource_version
        for _ in range(MOST_PAGES):
            request = Request(method="GET", path=path, query=asked)
            page = codec.listing(await self._transport.send(request, LIST_TIMEOUT))
            yield page
            if not page.next:
                return
            if page.next == asked.get("continue"):
                raise UnexpectedAnswer(f"GET {path}: the list does not go on: twice the same page")
            asked.pop("resourceVersion", None)
            asked["continue"] = page.next
        raise UnexpectedAnswer(f"GET {path}: the list does not end after {MOST_PAGES} pages")

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
        self,
        path: str,
        query: Mapping[str, str],
        timeout: float,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch, many at a time.

        The server is told to end the stream after `timeout` seconds; if it does not, it hangs,
        and the stream is cut. `opened` is called when the server has agreed to the watch: the
        first line may be long in coming.
        """
        asked = {
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, round(timeout))),
        }
        request = Request(method="GET", path=path, query=asked)
        splitter = LineSplitter()
        grace = min(WATCH_GRACE, timeout)
        async with self._transport.stream(request, timeout + grace) as stream:
            if opened is not None:
                opened()
            async for chunk in stream:
                if lines := splitter.feed(chunk):
                    yield lines
        if splitter.partial:
            raise UnexpectedAnswer(f"WATCH {path}: the stream ended inside an event")

    async def raw(self, path: str, *, accept: str = "") -> bytes:
        """The answer to a GET of any path, as it comes: `/version`, `/readyz`, discovery."""
        request = Request(method="GET", path=path, accept=accept, any_form=True)
        return await self._transport.send(request, self._timeout)

    # --- writing

    async def create(self, resource: Resource[T], obj: T | Object, *, field_manager: str = "") -> T:
        """The new object; `AlreadyExists` if there is one of that name."""
        namespace = _namespace_of(obj)
        if resource.namespaced and not namespace:
            raise ValueError(f"a {resource.kind} needs metadata.namespace to be created")
        path = collection(resource, namespace)
        body = msgspec.json.encode(obj)
        return await self._write(resource, "POST", path, body, query=_manager(field_manager))

    async def update(
        self, resource: Resource[T], obj: Object, *, subresource: str = "", field_manager: str = ""
    ) -> T:
        """The object after it was replaced whole; a dictionary, so that nothing is dropped."""
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

        A merge patch that carries `metadata.uid` and `metadata.resourceVersion` is refused with
        `Conflict` when the object is another one or has changed.
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
        """The object after a server-side apply of exactly the fields given.

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
        """None when the object is gone, the object when it stays until its finalizers are done.

        With a uid or version, only that very object is deleted; `Conflict` otherwise. Pods have
        a grace period, and 0 says that their processes are gone.
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
        # Some kinds are answered whole when they are gone, so this is not told to the caches.
        return self._decode(resource, answer)

    async def post(
        self, resource: Resource[T], name: str, subresource: str, body: Object, namespace: str = ""
    ) -> Object:
        """The answer of a subresource that is an action: `token`, `eviction`, `binding`."""
        path = object_path(resource, name, namespace, subresource)
        answer: Object = msgspec.json.decode(
            await self._send("POST", path, msgspec.json.encode(body))
        )
        return answer

    # --- inside

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
        obj = self._decode(resource, answer)
        if subresource in _WHOLE:
            for theirs, listener in self._listeners.get(kind_of(resource), ()):
                if theirs.type is resource.type:
                    listener.put(obj)
                else:
                    # What they cannot read the watch will tell them about.
                    with suppress(UnexpectedAnswer):
                        listener.put(self._decode(theirs, answer))
        return obj


def kind_of(resource: Resource[Any]) -> tuple[str, str]:
    """What tells a kind from all others."""
    return resource.api_version, resource.plural


def _namespace_of(obj: "TypedObject | Object") -> str:
    if isinstance(obj, dict):
        namespace: str = obj["metadata"].get("namespace", "")
        return namespace
    return obj.metadata.namespace


def _manager(field_manager: str) -> dict[str, str]:
    return {"fieldManager": field_manager} if field_manager else {}
