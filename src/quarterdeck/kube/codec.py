"""Decodes lists and watch events, also if an object in them does not decode.

Complete lines of a watch are decoded in one pass. Only if that fails, each line is decoded by
itself, so that a malformed object affects no other. Decoded objects are made lean to save memory:
they keep only the managedFields of the wanted managers, and share the strings that are the same for
all objects of a kind.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, Union, cast

import msgspec
from msgspec.structs import force_setattr

from quarterdeck.api.meta import Key, ManagedFields, Object, Resource, TypedObject
from quarterdeck.kube.collector import collector_paused
from quarterdeck.kube.errors import Status, UnexpectedAnswer
from quarterdeck.kube.watch_events import (
    Added,
    Bookmark,
    Deleted,
    Event,
    Failure,
    ListPage,
    Modified,
    UnreadableObject,
    Version,
)
from quarterdeck.log import get_logger

log = get_logger("kube.codec")

T = TypeVar("T", bound="TypedObject | Object")

Identity = tuple[Key, str, int]
"""An object's key, uid and resource version; versions are numbers, so that they can be compared."""
MAX_LINE_BYTES = 1 << 26
"""An event with more bytes counts as endless; the largest have a few million."""
MALFORMED = (KeyError, ValueError, TypeError, AttributeError)
"""What `identify` and `lean` raise for an object without a name, uid or numeric version."""


class _PartialMeta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str | None = None
    resource_version: str | int | None = None


class _Partial(msgspec.Struct):
    metadata: _PartialMeta


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: Version
    continue_: str = msgspec.field(name="continue", default="")


class _RawList(msgspec.Struct):
    metadata: _ListMeta
    # Go writes null for an empty list; an answer without the field is no list.
    items: list[msgspec.Raw] | None
    kind: str = ""
    api_version: str = msgspec.field(name="apiVersion", default="")


_RAW_EVENT = msgspec.json.Decoder(_RawEvent)
_RAW_LIST = msgspec.json.Decoder(_RawList)
_PARTIAL = msgspec.json.Decoder(_Partial)


class Codec(Generic[T]):
    """Decodes answers about one resource."""

    def __init__(
        self,
        resource: Resource[T],
        *,
        managers: Sequence[str] | None = None,
        wanted: Callable[[Key], bool] | None = None,
    ) -> None:
        """Keep the managedFields of these managers; None keeps all.

        Lists contain only the objects with a wanted key; None keeps all.
        """
        self._resource = resource
        self._api_version = resource.api_version
        self._kind = resource.kind
        self._managers = None if managers is None else frozenset(managers)
        self._wanted = wanted
        typed = issubclass(resource.type, msgspec.Struct)
        of: Any = resource.type if typed else dict[str, Any]
        self._object: msgspec.json.Decoder[T] = msgspec.json.Decoder(of)
        self._event: msgspec.json.Decoder[Event[T]] = msgspec.json.Decoder(
            Union[Added[of], Modified[of], Deleted[of], Bookmark, Failure]  # noqa: UP007 a run-time value
        )
        self.identify = cast("Callable[[T], Identity]", _of_struct if typed else _of_dict)
        self.labels = cast(
            "Callable[[T], dict[str, str]]", _struct_labels if typed else _dict_labels
        )
        self.lean = cast("Callable[[T], T]", self._lean_struct if typed else self._lean_dict)
        self._trimmed = cast(
            "Callable[[T], T]", self._trimmed_struct if typed else self._trimmed_dict
        )

    def object(self, body: bytes | msgspec.Raw) -> T:
        """The one object of an answer, with all its managedFields."""
        return self._object.decode(body)

    def other_kind(self, obj: T) -> str:
        """The kind and version of an object of another kind; empty if the kind is right."""
        kind, api_version = _kind(obj)
        if (kind, api_version) == (self._kind, self._api_version):
            return ""
        return f"{kind or 'no kind'} of {api_version or 'no version'}"

    def trimmed(self, obj: T) -> T:
        """A copy of the object with only the wanted managedFields."""
        return obj if self._managers is None else self._trimmed(obj)

    def wants(self, obj: T) -> bool:
        """Whether the object has a wanted key."""
        return self._wanted is None or self._wanted(self.identify(obj)[0])

    def events(self, lines: bytes | bytearray) -> list[Event[T]]:
        """The events in complete lines; their objects are not made lean."""
        try:
            return self._event.decode_lines(lines)
        except msgspec.MsgspecError:
            one_by_one = map(self._one_event, bytes(lines).split(b"\n"))
            return [event for event in one_by_one if event is not None]

    def listing(self, body: bytes) -> ListPage[T]:
        """One page of a list; items that do not decode are logged, with keys in `unreadable`."""
        with collector_paused():
            return self._listing(body)

    def _listing(self, body: bytes) -> ListPage[T]:
        # Each item is made lean at once: decoding the whole list first needs a fifth more memory at
        # its peak, and is not quicker.
        page = _decoded(_RAW_LIST, body, "a list")
        # A CRD can name the kind of its list; only the end of the name is a convention.
        if not page.kind.endswith("List") or page.api_version != self._api_version:
            found = f"{page.kind or 'no kind'} of {page.api_version or 'no version'}"
            raise UnexpectedAnswer(f"answer is not a list of {self._resource.plural}, but {found}")
        unreadable: list[Key] = []
        items = [
            obj
            for raw in page.items or ()
            if (obj := self._item(raw, unreadable)) is not None and self.wants(obj)
        ]
        meta = page.metadata
        return ListPage(items, meta.resource_version, meta.continue_, unreadable)

    def _item(self, raw: msgspec.Raw, unreadable: list[Key]) -> T | None:
        try:
            return self.lean(self._object.decode(raw))
        except (msgspec.MsgspecError, *MALFORMED) as error:
            unreadable.append(self._named(raw, error))
            return None

    def _one_event(self, line: bytes) -> Event[T] | None:
        """The event; None for a bookmark without a version, which can be skipped."""
        if not line:
            return None
        try:
            return self._event.decode(line)
        except msgspec.MsgspecError as error:
            raw = _decoded(_RAW_EVENT, line, "a watch event")
            if raw.type == "BOOKMARK":
                log.error("bookmark skipped", resource=self._resource.plural, error=str(error))
                return None
            if raw.type == "ERROR":
                return Failure(Status(code=500, message=f"ERROR event without a Status: {error}"))
            key, version = self._log_undecodable(raw.object, error)
            return UnreadableObject(key, version, raw.type == "DELETED")

    def readable_part(self, event: Event[T], error: Exception) -> UnreadableObject:
        """The key and version of the object of an event that could not be applied.

        Raises the error again if the event is well-formed: then the fault is in our code.
        """
        if not isinstance(event, (Added, Modified, Deleted)) or self._well_formed(event.object):
            raise error
        key, version = self._log_undecodable(msgspec.json.encode(event.object), error)
        return UnreadableObject(key, version, isinstance(event, Deleted))

    def _well_formed(self, obj: T) -> bool:
        try:
            self.identify(self.lean(obj))
        except MALFORMED:
            return False
        return True

    def log_malformed(self, obj: T, error: Exception) -> Key:
        """Log a malformed object of a list; return its key."""
        return self._named(msgspec.json.encode(obj), error)

    def _named(self, raw: bytes | msgspec.Raw, error: Exception) -> Key:
        key, _ = self._log_undecodable(raw, error)
        if not key.name:
            # The cache may hold this object: leaving it out would report it as deleted.
            raise UnexpectedAnswer(f"answer has a {self._kind} without a name: {error}")
        return key

    def _log_undecodable(self, raw: bytes | msgspec.Raw, error: Exception) -> tuple[Key, int]:
        """Log an object that does not decode; return its key and version, empty if unreadable."""
        try:
            meta = _PARTIAL.decode(raw).metadata
            key = Key(meta.namespace or "", meta.name)
            version = int(meta.resource_version or 0)
        except msgspec.MsgspecError:
            key, version = Key("", ""), 0
        except ValueError:
            version = 0
        log.error(
            "object skipped, it does not decode",
            resource=self._resource.plural,
            key=str(key),
            error=f"{type(error).__name__}: {error}",
        )
        return key, version

    def _lean_struct(self, obj: TypedObject) -> TypedObject:
        # Items in a list of a built-in kind have no kind.
        if obj.kind != self._kind and obj.kind:
            raise TypeError(f"is a {obj.kind}, not a {self._kind}")
        # One shared string for all objects of the kind.
        force_setattr(obj, "api_version", self._api_version)
        force_setattr(obj, "kind", self._kind)
        if obj.metadata.managed_fields:
            obj.metadata.managed_fields = self._kept(obj.metadata.managed_fields)
        return obj

    def _kept(self, entries: list[ManagedFields]) -> list[ManagedFields]:
        """The entries of the wanted managers, copied so that the received bytes can be freed."""
        wanted = self._managers
        kept = [entry for entry in entries if wanted is None or entry.manager in wanted]
        for entry in kept:
            entry.fields_v1 = entry.fields_v1.copy()
        return kept

    def _lean_dict(self, obj: Object) -> Object:
        # Items in a list of a built-in kind lack these two.
        if obj.get("kind", self._kind) != self._kind:
            raise TypeError(f"is a {obj['kind']}, not a {self._kind}")
        obj["apiVersion"] = self._api_version
        obj["kind"] = self._kind
        meta = obj["metadata"]
        if self._managers is not None and "managedFields" in meta:
            self._trim(meta)
        return obj

    def _trim(self, meta: Object) -> None:
        wanted = self._managers or ()
        kept = [entry for entry in meta["managedFields"] if entry.get("manager") in wanted]
        if kept:
            meta["managedFields"] = kept
        else:
            del meta["managedFields"]

    def _trimmed_struct(self, obj: TypedObject) -> TypedObject:
        kept = self._kept(obj.metadata.managed_fields)
        meta = msgspec.structs.replace(obj.metadata, managed_fields=kept)
        return msgspec.structs.replace(obj, metadata=meta)

    def _trimmed_dict(self, obj: Object) -> Object:
        meta = dict(obj["metadata"])
        if "managedFields" in meta:
            self._trim(meta)
        return {**obj, "metadata": meta}


Decoded = TypeVar("Decoded")


def _decoded(decoder: "msgspec.json.Decoder[Decoded]", body: bytes, what: str) -> Decoded:
    """The decoded body; `UnexpectedAnswer` if it is something else, as a proxy's page."""
    try:
        return decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise UnexpectedAnswer(f"answer is not {what}: {error}") from error


def _kind(obj: "TypedObject | Object") -> tuple[str, str]:
    if isinstance(obj, dict):
        return obj.get("kind", ""), obj.get("apiVersion", "")
    return obj.kind, obj.api_version


def _of_struct(obj: TypedObject) -> Identity:
    meta = obj.metadata
    return Key(meta.namespace, meta.name), meta.uid, int(meta.resource_version)


def _of_dict(obj: Object) -> Identity:
    meta = obj["metadata"]
    return (
        Key(meta.get("namespace", ""), meta["name"]),
        meta["uid"],
        int(meta["resourceVersion"]),
    )


def _struct_labels(obj: TypedObject) -> dict[str, str]:
    return obj.metadata.labels


def _dict_labels(obj: Object) -> dict[str, str]:
    labels: dict[str, str] = obj["metadata"].get("labels") or {}
    return labels


class LineSplitter:
    """Cuts a stream into complete lines of any length.

    It keeps the pieces of a partial line and joins them once, so the cost of a long line is linear.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._held = 0

    @property
    def partial(self) -> bool:
        """Whether the last line is not complete yet."""
        return bool(self._pieces)

    def feed(self, chunk: bytes) -> bytes:
        """All lines that are complete now, with their newlines; empty if none is."""
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._pieces.append(chunk)
            self._held += len(chunk)
            if self._held > MAX_LINE_BYTES:
                raise UnexpectedAnswer(f"an event does not end after {self._held} bytes")
            return b""
        if not self._pieces and end == len(chunk):
            return chunk
        complete = b"".join([*self._pieces, chunk[:end]])
        self._pieces = [chunk[end:]] if end < len(chunk) else []
        self._held = len(chunk) - end
        return complete
