"""The cache's list/watch state machine, without I/O: events in, changes out.

What comes in: lists, watch events in the server's order, and the answers to our own writes,
which run ahead of the watch or behind it. What goes out: one `Change` per real change, and each
deletion exactly once, however the inputs interleave.

Two facts carry it. Versions of a resource can be compared as numbers. And the watch is in
order: when it has passed a version, it has told everything up to it. So an own answer at or
behind the watch is old news, and one ahead of it is taken unless something newer is held; an
event about an object that is held in a newer version is an echo. A uid never comes back.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from quarterdeck.api.meta import Key, Object, TypedObject
from quarterdeck.kube.codec import Identity

T = TypeVar("T", bound="TypedObject | Object")

Index = Callable[[T], Iterable[str]]
"""The values under which an object is found in an index."""


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One object appeared (`old` is None), changed, or went (`new` is None)."""

    key: Key
    old: T | None
    new: T | None
    own: bool = False
    """Known from the answer to a write of this process, ahead of the watch."""


Subscriber = Callable[[Change[T]], None]


class Store(Generic[T]):
    """The objects that the server has, as far as we have been told."""

    def __init__(
        self,
        identify: Callable[[T], Identity],
        indexes: Mapping[str, Index[T]] | None = None,
    ) -> None:
        self.objects: dict[Key, T] = {}
        self.version = 0
        """The watch has told everything up to this version."""
        self._identify = identify
        self._indexes: dict[str, Index[T]] = {}
        self._indexed: dict[str, dict[str, dict[Key, T]]] = {}
        self._subscribers: list[Subscriber[T]] = []
        # Uids of objects of whose end an own answer told us and the watch has not yet, with the
        # version in which we held them.
        self._ended: dict[str, int] = {}
        self.add_indexes(indexes or {})

    def add_indexes(self, indexes: Mapping[str, Index[T]]) -> None:
        """Index by these functions too, what is held already included.

        A cache is shared, so a name stands for one function.
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
        """Call this for every change from now on; what is held already comes first.

        What comes back ends the subscription.
        """
        self._subscribers = [*self._subscribers, subscriber]
        for key, obj in self.objects.items():
            subscriber(Change(key, None, obj))

        def unsubscribe() -> None:
            # A new list: a change may just be on its way through the old one.
            self._subscribers = [it for it in self._subscribers if it is not subscriber]

        return unsubscribe

    def clear(self) -> None:
        """Hold nothing; that is told as if all had been deleted."""
        for key, held in list(self.objects.items()):
            self._drop(key, held)
        self._ended.clear()

    def by_index(self, name: str, value: str) -> list[T]:
        """The objects that the index has under this value."""
        return list(self._indexed[name].get(value, {}).values())

    def upsert(self, obj: T) -> None:
        """The watch says that an object was added or changed."""
        key, uid, version = self._identify(obj)
        self.advance(version)
        self._take(key, uid, version, obj, own=False)

    def delete(self, obj: T) -> None:
        """The watch says that an object is gone, or no longer matches the selector."""
        key, uid, version = self._identify(obj)
        self._ended.pop(uid, None)
        self.delete_key(key, version)

    def delete_key(self, key: Key, version: int) -> None:
        """The same when only the key of the object could be read."""
        self.advance(version)
        held = self.objects.get(key)
        # Equal is possible: the very write that we hold took the object out of the selector.
        if held is not None and self._identify(held)[2] <= version:
            self._drop(key, held)

    def advance(self, version: int) -> None:
        """The watch says that everything up to this version has been told."""
        if version > self.version:
            self.version = version

    def put(self, obj: T) -> None:
        """The server answered a write of ours with this object."""
        key, uid, version = self._identify(obj)
        if version > self.version:
            self._take(key, uid, version, obj, own=True)

    def forget(self, key: Key, uid: str) -> None:
        """The server answered that our delete of this object is done."""
        held = self.objects.get(key)
        if held is not None and self._identify(held)[1] == uid:
            self._end(key, held)

    def replace(self, items: Iterable[T], version: int, unreadable: Collection[Key] = ()) -> None:
        """A list of everything there is at a version; what could not be read stays as it is."""
        # A server that was restored from a backup counts from there: nothing held is comparable.
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
        # Not in a list that is recent enough to have had it: the server has let go of it too.
        self._ended = {
            uid: held for uid, held in self._ended.items() if uid in uids or held > version
        }
        for key in self.objects.keys() - listed:
            held = self.objects[key]
            # What is ahead of the list was written by us after it was taken: the watch will tell.
            if rewound or self._identify(held)[2] <= version:
                self._drop(key, held)

    def _take(self, key: Key, uid: str, version: int, obj: T, *, own: bool) -> None:
        """Hold an object unless it is old news."""
        if self._ended and uid in self._ended:
            return
        held = self.objects.get(key)
        if held is not None:
            _, held_uid, held_version = self._identify(held)
            if held_version >= version:
                return
            if held_uid != uid:
                if not uid:  # malformed: nothing says that it is another object
                    return
                if own:
                    self._end(key, held)
                else:
                    self._drop(key, held)
                held = None
        self._hold(key, held, obj, own=own)

    def _overwrite(self, key: Key, uid: str, version: int, obj: T, *, own: bool) -> None:
        """Hold an object whatever is held, after the server's history was rewound."""
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
            self._tell(Change(key, old, new, own))

    def _end(self, key: Key, old: T) -> None:
        """Drop an object ahead of the watch, which is still to tell of its life and end."""
        _, uid, version = self._identify(old)
        self._ended[uid] = version
        self._drop(key, old, own=True)

    def _drop(self, key: Key, old: T, *, own: bool = False) -> None:
        del self.objects[key]
        if self._indexes:
            self._unindex(key, old)
        if self._subscribers:
            self._tell(Change(key, old, None, own))

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

    def _tell(self, change: Change[T]) -> None:
        for subscriber in self._subscribers:
            subscriber(change)
