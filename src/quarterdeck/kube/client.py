"""Writes objects, by resource; reads them as a `Reader` does.

A typed object drops fields that its type does not know, so it is never sent back whole: writes
are applies, patches, creates, and updates of plain dictionaries. Caches that follow a resource
through this client are told the answer to each write at once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.kube.connection import Connection
from quarterdeck.kube.errors import UnexpectedAnswer, parse_status
from quarterdeck.kube.metrics import RequestMetrics
from quarterdeck.kube.paths import collection, object_path
from quarterdeck.kube.reader import TIMEOUT, Reader, kind_of

T = TypeVar("T", bound="TypedObject | Object")
T_contra = TypeVar("T_contra", bound="TypedObject | Object", contravariant=True)

Propagation = Literal["Background", "Foreground", "Orphan"]
_PATCH = {"merge": "application/merge-patch+json", "json": "application/json-patch+json"}
_APPLY = "application/apply-patch+yaml"
# Answers with these subresources are the object itself.
_WHOLE = ("", "status")


class WriteListener(Protocol[T_contra]):
    """Somebody who wants the answers to writes; a cache."""

    def put(self, obj: T_contra) -> None:
        """An object as the server has it after a write."""

    def forget(self, key: Key, uid: str) -> None:
        """An object that is gone after a delete."""


class Client(Reader):
    """A client of one API server; close it, or use it as a context manager."""

    def __init__(
        self,
        connection: Connection,
        *,
        timeout: float = TIMEOUT,
        metrics: RequestMetrics | None = None,
    ) -> None:
        """Bound each request, with all its retries, by a time-out in seconds."""
        super().__init__(connection, timeout=timeout, metrics=metrics)
        self._listeners: dict[tuple[str, str], list[tuple[Resource[Any], WriteListener[Any]]]] = {}

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


def _namespace_of(obj: "TypedObject | Object") -> str:
    if isinstance(obj, dict):
        namespace: str = obj["metadata"].get("namespace", "")
        return namespace
    return obj.metadata.namespace


def _manager(field_manager: str) -> dict[str, str]:
    return {"fieldManager": field_manager} if field_manager else {}
