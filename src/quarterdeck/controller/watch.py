"""From a changed object to the keys that have to be reconciled.

A watch is of objects that the manager was asked for, says which changes matter, and maps an
object to keys: its own, its owner's, that of a singleton, what its labels or a function say.
Old and new object are both mapped, so that an object which moves from one owner to another wakes
both.
"""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.controller.metadata import controller_of, key_of, labels_of
from quarterdeck.controller.objects import Objects
from quarterdeck.kube import Cache, Change

T = TypeVar("T", bound=TypedObject | Object)

Mapping = Callable[[T], Iterable[Key]]
Predicate = Callable[[T | None, T | None], bool]


def to_self(obj: TypedObject | Object) -> Iterable[Key]:
    """Reconcile the object itself."""
    return (key_of(obj),)


def to_owner(owner: Resource[Any]) -> Callable[[TypedObject | Object], Iterable[Key]]:
    """Reconcile the object of this kind that controls the one that changed."""

    def keys(obj: TypedObject | Object) -> Iterable[Key]:
        reference = controller_of(obj)
        if reference is None:
            return ()
        group = reference.api_version.rpartition("/")[0]
        if (group, reference.kind) != (owner.group, owner.kind):
            return ()
        return (Key(key_of(obj).namespace if owner.namespaced else "", reference.name),)

    return keys


def to_singleton(key: Key) -> Callable[[TypedObject | Object], Iterable[Key]]:
    """Reconcile this one, whatever changed."""
    keys = (key,)
    return lambda _obj: keys


def to_labelled(
    name: str, *, namespace: str = "", namespaced: bool = True
) -> Callable[[TypedObject | Object], Iterable[Key]]:
    """Reconcile what the labels of the object that changed name; nothing where they are missing.

    `name` and `namespace` are the labels. Without a label for it, the namespace is the one that
    the object is in, or none if what is named is not `namespaced`.
    """

    def keys(obj: TypedObject | Object) -> Iterable[Key]:
        labels = labels_of(obj)
        where = labels.get(namespace, "") if namespace else key_of(obj).namespace
        if not labels.get(name) or (namespaced and not where):
            return ()
        return (Key(where if namespaced else "", labels[name]),)

    return keys


def spec_changed(old: TypedObject | Object | None, new: TypedObject | Object | None) -> bool:
    """Whether more than status and metadata changed: appeared, went, is going, or new spec."""
    if old is None or new is None:
        return True
    return _generation(old) != _generation(new)


def _generation(obj: TypedObject | Object) -> tuple[object, object]:
    if isinstance(obj, dict):
        return obj["metadata"].get("generation"), obj["metadata"].get("deletionTimestamp")
    return obj.metadata.generation, obj.metadata.deletion_timestamp


class Watch(msgspec.Struct, Generic[T], frozen=True):
    """Which objects wake a controller, and for which keys."""

    source: Objects[T] | Cache[T]
    """What `manager.objects` or `manager.cache` gave."""
    map: Mapping[T] = to_self
    predicate: Predicate[T] | None = None
    """Whether a change matters; None is for an object that is not there before or after."""

    @property
    def cache(self) -> Cache[T]:
        """The cache whose changes wake the controller."""
        return self.source.cache if isinstance(self.source, Objects) else self.source

    def handler(self, add: Callable[[Key], None]) -> Callable[[Change[T]], None]:
        """What to call for each change; it is the hot path of every watch event."""
        mapping, predicate = self.map, self.predicate

        def changed(change: Change[T]) -> None:
            if predicate is not None and not predicate(change.old, change.new):
                return
            if mapping is to_self:
                add(change.key)
                return
            for obj in (change.old, change.new):
                if obj is not None:
                    for key in mapping(obj):
                        add(key)

        return changed
