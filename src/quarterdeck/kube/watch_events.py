"""The events of a watch, and the pages of a list."""

from typing import Annotated, Generic, TypeVar

import msgspec

from quarterdeck.api.meta import Key, Object, TypedObject
from quarterdeck.kube.errors import Status

T = TypeVar("T", bound="TypedObject | Object")


class _WatchEvent(msgspec.Struct, tag_field="type"):
    """The envelope of a watch event: `{"type": ..., "object": ...}`."""


class Added(_WatchEvent, Generic[T], tag="ADDED"):
    """An object was created, or matches the selector now."""

    object: T


class Modified(_WatchEvent, Generic[T], tag="MODIFIED"):
    """An object was changed."""

    object: T


class Deleted(_WatchEvent, Generic[T], tag="DELETED"):
    """An object was deleted, or no longer matches the selector; its last state."""

    object: T


Version = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,20}$")]
"""A number of 64 bits: Python does not convert a text of thousands of digits."""


class _BookmarkMeta(msgspec.Struct, rename="camel"):
    resource_version: Version
    annotations: dict[str, str] = {}


class _BookmarkObject(msgspec.Struct):
    # Not of its kind's type: required fields are null in it.
    metadata: _BookmarkMeta


class Bookmark(_WatchEvent, tag="BOOKMARK"):
    """The watch has sent everything up to this version."""

    object: _BookmarkObject

    @property
    def version(self) -> int:
        """The resource version up to which everything has been sent."""
        return int(self.object.metadata.resource_version)

    @property
    def ends_initial_events(self) -> bool:
        """Whether all objects that existed at the start of the watch have been sent."""
        return self.object.metadata.annotations.get("k8s.io/initial-events-end") == "true"


class Failure(_WatchEvent, tag="ERROR"):
    """The server ends the watch with an error."""

    object: Status


class UnreadableObject(msgspec.Struct, frozen=True):
    """An object that does not decode into its type; only its key and version could be read."""

    key: Key
    version: int
    """0 if it could not be read."""
    deleted: bool

    @property
    def identified(self) -> bool:
        """Whether the object's name and version are known, so that only this event was missed."""
        return bool(self.key.name and self.version)


Event = Added[T] | Modified[T] | Deleted[T] | Bookmark | Failure | UnreadableObject


class ListPage(msgspec.Struct, Generic[T]):
    """One page of a list."""

    items: list[T]
    resource_version: str
    next: str = ""
    unreadable: list[Key] = []
