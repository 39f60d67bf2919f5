"""Maps a changed object to the keys that have to be reconciled.

A watch has the objects of `manager.objects`, a predicate for the changes that count, and a function
from an object to keys: its own key, its owner's, that of a singleton, the one in its labels. The
old and the new object are both mapped, so that an object which moves from one owner to another
wakes both.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.controller.metadata import controller_of, key_of, labels_of
from quarterdeck.controller.mistakes import WrongReturn
from quarterdeck.controller.objects import Objects
from quarterdeck.kube import Cache, Change

T = TypeVar("T", bound=TypedObject | Object)

Mapping = Callable[[T], Iterable[Key]]
Predicate = Callable[[T | None, T | None], bool]


def to_self(obj: TypedObject | Object) -> Iterable[Key]:
    """Reconcile the object itself."""
    return (key_of(obj),)


def to_owner(owner: Resource[Any]) -> Callable[[TypedObject | Object], Iterable[Key]]:
    """Reconcile the owner of this kind that controls the changed object."""

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
    """Reconcile this key, whatever changed."""
    keys = (key,)
    return lambda _obj: keys


def to_labelled(
    name: str, *, namespace: str = "", namespaced: bool = True
) -> Callable[[TypedObject | Object], Iterable[Key]]:
    """Reconcile the object that the labels of the changed object name; nothing without labels.

    `name` and `namespace` are the keys of the labels. Without `namespace`, the namespace is that of
    the changed object, or none if `namespaced` is False.
    """

    def keys(obj: TypedObject | Object) -> Iterable[Key]:
        labels = labels_of(obj)
        where = labels.get(namespace, "") if namespace else key_of(obj).namespace
        if not labels.get(name) or (namespaced and not where):
            return ()
        return (Key(where if namespaced else "", labels[name]),)

    return keys


def spec_changed(old: TypedObject | Object | None, new: TypedObject | Object | None) -> bool:
    """Whether the object was created or deleted, is being deleted, or has a new generation."""
    if old is None or new is None:
        return True
    return _generation(old) != _generation(new)


def _generation(obj: TypedObject | Object) -> tuple[object, object]:
    if isinstance(obj, dict):
        return obj["metadata"].get("generation"), obj["metadata"].get("deletionTimestamp")
    return obj.metadata.generation, obj.metadata.deletion_timestamp


class Watch:
    """The objects that wake a controller, and for which keys.

    The type is the same for all kinds, so watches of several kinds are a list of watches to a type
    checker; it checks the functions against the kind where the watch is made.
    """

    __slots__ = ("map", "predicate", "source")

    def __init__(
        self,
        source: Objects[T] | Cache[T],
        map: Mapping[T] = to_self,  # noqa: A002 - it is what the watch does
        predicate: Predicate[T] | None = None,
    ) -> None:
        """Watch the result of `manager.objects` or `manager.cache`.

        `predicate` says whether a change from the old to the new object counts; None if there is
        no object.
        """
        self.source: Objects[Any] | Cache[Any] = source
        self.map: Mapping[Any] = map
        self.predicate: Predicate[Any] | None = predicate

    @property
    def cache(self) -> Cache[Any]:
        """The cache whose changes wake the controller."""
        return self.source.cache if isinstance(self.source, Objects) else self.source

    def handler(self, add: Callable[[Key], None]) -> Callable[[Change[Any]], None]:
        """The handler of each change; it is the hot path of every watch event."""
        mapping, predicate = self.map, self.predicate

        def changed(change: Change[Any]) -> None:
            if predicate is not None and not predicate(change.old, change.new):
                return
            if mapping is to_self:
                add(change.key)
                return
            for obj in (change.old, change.new):
                if obj is not None:
                    found = mapping(obj)
                    if found is None:
                        raise WrongReturn(mapping, found, "return a list of Keys")
                    for key in found:
                        if type(key) is not Key:
                            shown = found if isinstance(found, str | list | tuple) else key
                            raise WrongReturn(mapping, shown, "return a list of Keys")
                        add(key)

        return changed
