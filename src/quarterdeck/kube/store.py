"""The state machine of a cache: lists, events and answers in, changes out. Pure.

The inputs are lists, watch events in the server's order, and the answers to our own writes, which
may arrive before or after the watch event. The output is one `Change` per real change, and each
deletion exactly once, in whatever order the inputs arrive.

It relies on three facts. Versions of a resource can be compared as numbers. The watch is in order:
at a version, it has sent everything up to that version. A uid is never used again. So an answer at
or behind the version of the watch is ignored, and an answer ahead of it is stored unless a newer
object is held. An event about an object that is held in a newer version is ignored.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from quarterdeck.api.meta import Key, Object, TypedObject
from quarterdeck.kube.codec import Identity

T = TypeVar("T", bound="TypedObject | Object")

Index = Callable[[T], Iterable[str]]
"""Returns the values under which an index has an object."""


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One object was added (`old` is None), changed, or deleted (`new` is None)."""

    key: Key
    old: T | None
    new: T | None
    own: bool = False
    """Whether it comes from the answer to a write of this process, before the watch event."""


Subscriber = Callable[[Change[T]], None]


class Store(Generic[T]):
    """The objects of a cache, with their indexes and subscribers."""

    def __init__(
        self,
        identify: Callable[[T], Identity],
        indexes: Mapping[str, Index[T]] | None = None,
    ) -> None:
        self.objects: dict[Key, T] = {}
        self.version = 0
        """The watch has sent everything up to this resource version."""
        self._identify = identify
        self._indexes: dict[str, Index[T]] = {}
        self._indexed: dict[str, dict[str, dict[Key, T]]] = {}
        self._subscribers: list[Subscriber[T]] = []
        # The uids of objects whose deletion is known from an answer and not yet from the watch,
        # with the version in which we held them.
        self._ended: dict[str, int] = {}
        self.add_indexes(indexes or {})

    def add_indexes(self, indexes: Mapping[str, Index[T]]) -> None:
        """Add these indexes, also for the objects that are held already.

        A cache is shared, so an index name must have one function.
        """
        for name, values in indexes.items():
            if self._indexes.get(name, values) != values:
                raise ValueError(f"there is another index {name!r} of these objects; rename one")
            self._indexes[name] = values
            index: dict[str, dict[Key, T]] = {}
            self._indexed[name] = index
            for key, obj in self.objects.items():
                for value in values(obj):
                    index.setdefault(value, {})[key] = obj

    def subscribe(self, subscriber: Subscriber[T]) -> Callable[[], None]:
        """Call this function for every change from now on, first for the objects held already.

        Call the returned function to end the subscription.
        """
        self._subscribers = [*self._subscribers, subscriber]
        for key, obj in self.objects.items():
            subscriber(Change(key, None, obj))

        def unsubscribe() -> None:
            # A new list, because `_notify` may be iterating over the old one.
            self._subscribers = [it for it in self._subscribers if it is not subscriber]

        return unsubscribe

    def clear(self) -> None:
        """Drop all objects; subscribers see them deleted."""
        for key, held in list(self.objects.items()):
            self._drop(key, held)
        self._ended.clear()

    def by_index(self, name: str, value: str) -> list[T]:
        """The objects that the index has under this value."""
        return list(self._indexed[name].get(value, {}).values())

    def upsert(self, obj: T) -> None:
        """Apply a watch event: an object was added or changed."""
        key, uid, version = self._identify(obj)
        self.advance(version)
        self._take(key, uid, version, obj, own=False)

    def delete(self, obj: T) -> None:
        """Apply a watch event: an object was deleted, or no longer matches the selector."""
        key, uid, version = self._identify(obj)
        self._ended.pop(uid, None)
        self.delete_key(key, version)

    def delete_key(self, key: Key, version: int) -> None:
        """Apply a deletion of which only the key and version could be read."""
        self.advance(version)
        held = self.objects.get(key)
        # They are equal if the write that we hold made the object no longer match the selector.
        if held is not None and self._identify(held)[2] <= version:
            self._drop(key, held)

    def advance(self, version: int) -> None:
        """Note that the watch has sent everything up to this version."""
        if version > self.version:
            self.version = version

    def put(self, obj: T) -> None:
        """Store the answer to a write of ours."""
        key, uid, version = self._identify(obj)
        if version > self.version:
            self._take(key, uid, version, obj, own=True)

    def forget(self, key: Key, uid: str) -> None:
        """Remove an object that we deleted, after the server's answer."""
        held = self.objects.get(key)
        if held is not None and self._identify(held)[1] == uid:
            self._end(key, held)

    def replace(self, items: Iterable[T], version: int, unreadable: Collection[Key] = ()) -> None:
        """Replace all objects by a list at a version; unreadable objects stay as they are."""
        # A storage restored from a backup has lower versions: those that we hold cannot be
        # compared.
        rewound = version < self.version
        if rewound:
            self._ended.clear()
        self.version = version
        take = self._overwrite if rewound else self._take
        listed = set(unreadable)
        uids = set()
        for obj in items:
            key, uid, own_version = self._identify(obj)
            listed.add(key)
            uids.add(uid)
            take(key, uid, own_version, obj, own=False)
        # A list that is recent enough and does not have the object confirms its deletion.
        self._ended = {
            uid: held for uid, held in self._ended.items() if uid in uids or held > version
        }
        for key in self.objects.keys() - listed:
            held = self.objects[key]
            # We wrote an object ahead of the list after the list was made: the watch will send it.
            if rewound or self._identify(held)[2] <= version:
                self._drop(key, held)

    def _take(self, key: Key, uid: str, version: int, obj: T, *, own: bool) -> None:
        """Hold an object unless a newer state of it is known."""
        if self._ended and uid in self._ended:
            return
        held = self.objects.get(key)
        if held is not None:
            _, held_uid, held_version = self._identify(held)
            if held_version >= version:
                return
            if held_uid != uid:
                if not uid:  # malformed: it may be the same object
                    return
                if own:
                    self._end(key, held)
                else:
                    self._drop(key, held)
                held = None
        self._hold(key, held, obj, own=own)

    def _overwrite(self, key: Key, uid: str, version: int, obj: T, *, own: bool) -> None:
        """Hold an object whatever version is held, after the storage was restored from a backup."""
        held = self.objects.get(key)
        if held is not None:
            _, held_uid, held_version = self._identify(held)
            if held_uid != uid:
                self._drop(key, held)
                held = None
            elif held_version == version and held == obj:
                return
        self._hold(key, held, obj, own=own)

    def _hold(self, key: Key, old: T | None, new: T, *, own: bool) -> None:
        self.objects[key] = new
        if self._indexes:
            self._unindex(key, old)
            for name, values in self._indexes.items():
                for value in values(new):
                    self._indexed[name].setdefault(value, {})[key] = new
        if self._subscribers:
            self._notify(Change(key, old, new, own))

    def _end(self, key: Key, old: T) -> None:
        """Drop an object before the watch has sent its deletion; ignore its earlier events."""
        _, uid, version = self._identify(old)
        self._ended[uid] = version
        self._drop(key, old, own=True)

    def _drop(self, key: Key, old: T, *, own: bool = False) -> None:
        del self.objects[key]
        if self._indexes:
            self._unindex(key, old)
        if self._subscribers:
            self._notify(Change(key, old, None, own))

    def _unindex(self, key: Key, old: T | None) -> None:
        if old is None:
            return
        for name, values in self._indexes.items():
            index = self._indexed[name]
            for value in values(old):
                if bucket := index.get(value):
                    bucket.pop(key, None)
                    if not bucket:
                        del index[value]

    def _notify(self, change: Change[T]) -> None:
        for subscriber in self._subscribers:
            subscriber(change)
