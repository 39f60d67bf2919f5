"""Reads the objects of one kind, and makes the writes that need no comparison.

Each write is fenced: it carries the uid and the resource version of the object that the decision
was made on, so the server refuses it with `Conflict` if the object has changed since. `objects.py`
adds the writes that compare first: `ensure` and `set_status`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Generic, TypeVar

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.controller.metadata import (
    as_plain,
    fence,
    finalizers_of,
    is_being_deleted,
    key_of,
    labels_of,
)
from quarterdeck.controller.mistakes import NotSelected
from quarterdeck.controller.ownership import moved, owns_labels
from quarterdeck.controller.selection import ALL, Selection
from quarterdeck.controller.uses import WRITES, UndeclaredWrite, Write
from quarterdeck.kube import ApiError, Cache, Client, LabelSelector, NotFound
from quarterdeck.kube.client import Propagation
from quarterdeck.log import get_logger

log = get_logger("controller.objects")

T = TypeVar("T", bound=TypedObject | Object)


class Handle(Generic[T]):
    """Reads and simple writes of the objects of one kind, for one operator."""

    def __init__(
        self,
        resource: Resource[T],
        cache: Cache[T],
        client: Client,
        field_manager: str,
        writes: Collection[Write] = WRITES,
        selection: Selection = ALL,
    ) -> None:
        """Write through this client, as this field manager; only the declared calls are allowed."""
        self.resource = resource
        self.cache = cache
        self._writes = frozenset(writes)
        self._selection = selection
        self._client = client
        self._manager = field_manager
        self._log = log.bind(kind=resource.kind)

    def get(self, key: Key) -> T | None:
        """The object as the cache has it, None if it has none; do not change it."""
        return self.cache.get(key)

    def all(self) -> list[T]:
        """All objects that the cache has; do not change them."""
        return self.cache.list()

    def by_index(self, name: str, value: str) -> list[T]:
        """The objects that the index has under this value; do not change them."""
        return self.cache.by_index(name, value)

    async def create(self, new: Object) -> T:
        """Create the object and return it; `AlreadyExists` if there is one of that name.

        Only for an object that others may change afterwards; use `ensure` for one that we own.
        """
        self._declared("create")
        made: T = await self._client.create(
            self.resource, self._whole(new), field_manager=self._manager
        )
        # Not the key of `new`: the server may generate the name.
        self._log.v(4).info("created", key=str(key_of(made)))
        return made

    async def rehearse_create(self, new: Object) -> None:
        """Ask the server whether it would create the object; raises what a create would raise.

        Nothing is stored. Declared as `create` or `ensure`.
        """
        self._declared("ensure" if "ensure" in self._writes else "create")
        await self._client.rehearse_create(
            self.resource, self._whole(new), field_manager=self._manager
        )

    async def patch(self, obj: T, patch: Object) -> T:
        """The object after a merge patch; `Conflict` if it has changed since it was read.

        For single fields of an object that others own; None removes a field.
        """
        self._declared("patch")
        key = key_of(obj)
        meta = {**patch.get("metadata", {}), **fence(obj)}
        made: T = await self._client.patch(
            self.resource,
            key.name,
            {**patch, "metadata": meta},
            key.namespace,
            field_manager=self._manager,
        )
        self._log.v(4).info("patched", key=str(key))
        return made

    async def delete(self, obj: T, *, propagation: Propagation | None = None) -> None:
        """Delete this object; `Conflict` if it has changed since it was read."""
        self._declared("delete")
        await self._delete(obj, propagation)

    async def ensure_absent(self, key: Key) -> bool:
        """Delete the object if it exists; return whether it is gone.

        False while its finalizers keep it. Declared as `delete`.
        """
        self._declared("delete")
        obj = self.cache.get(key)
        if obj is not None and not is_being_deleted(obj):
            await self._delete(obj)
        return self.cache.get(key) is None

    async def prune(
        self,
        wanted: Collection[Key],
        ours: LabelSelector,
        *,
        among: Iterable[T] | None = None,
    ) -> list[Key]:
        """Delete our objects that are no longer wanted; return their keys.

        An object is ours if `ours` selects it and this operator set those labels: an object of
        somebody else with the same labels stays. If the server refuses to delete one object, the
        others are deleted all the same, and the first refusal is raised. A caller with an index
        of these labels gives what it has as `among`; otherwise all cached objects are looked at.
        """
        self._declared("prune")
        keys = ours.keys
        if not keys:
            raise ValueError("a selector without labels selects everything: nothing is pruned")
        found = [
            obj
            for obj in (self.cache.list() if among is None else among)
            if key_of(obj) not in wanted
            and ours.matches(labels_of(obj))
            and not is_being_deleted(obj)
        ]
        old = [obj for obj in found if owns_labels(as_plain(obj), self._manager, keys)]
        refused: list[ApiError] = []
        for obj in old:
            try:
                await self._delete(obj)
            except ApiError as error:
                refused.append(error)
        if refused:
            raise refused[0]
        return [key_of(obj) for obj in old]

    async def claim(self, obj: T, owner: str, annotations: Mapping[str, str | None]) -> T:
        """Move the object from its owner, a field manager, to this operator; return it.

        A single write changes annotations (None removes one) and records all fields of the old
        owner as applied by us, so our next `ensure` removes what it does not want. If several
        operators try at once, one succeeds and the others get `Conflict`.
        """
        self._declared("claim")
        key, seen = key_of(obj), fence(obj)
        # The cache keeps only our own entries, but all have to be written. The server checks that
        # they belong to the version that the decision was made on.
        found = await self._client.get(self.resource.plain, key.name, key.namespace)
        meta = found["metadata"]
        after = {
            name: value
            for name, value in {**(meta.get("annotations") or {}), **annotations}.items()
            if value is not None
        }
        entries = moved(meta.get("managedFields") or [], owner, self._manager)
        made = await self._set_metadata(key, seen, annotations=after, managedFields=entries)
        self._log.info("claimed", key=str(key), owner=owner)
        return made

    async def take_over(self, obj: T, entries: list[Object]) -> T:
        """The object with these managedFields and nothing else changed; declared as `claim`.

        For fields of others that our next `ensure` removes or sets. `entries` are all entries of
        the object that was read; `Conflict` if it has changed since.
        """
        self._declared("claim")
        key = key_of(obj)
        made = await self._set_metadata(key, fence(obj), managedFields=entries)
        self._log.v(4).info("fields taken over", key=str(key))
        return made

    async def ensure_finalizer(self, obj: T, finalizer: str) -> T:
        """The object with the finalizer, added if it was missing."""
        self._declared("finalizer")
        names = finalizers_of(obj)
        return obj if finalizer in names else await self._finalize(obj, [*names, finalizer])

    async def remove_finalizer(self, obj: T, finalizer: str) -> None:
        """Remove the finalizer, if the object has it."""
        self._declared("finalizer")
        names = finalizers_of(obj)
        if finalizer not in names:
            return
        try:
            await self._finalize(obj, [name for name in names if name != finalizer])
        except NotFound:
            return

    async def _finalize(self, obj: T, names: list[str]) -> T:
        key = key_of(obj)
        patch = {"metadata": {**fence(obj), "finalizers": names}}
        made: T = await self._client.patch(
            self.resource, key.name, patch, key.namespace, field_manager=self._manager
        )
        self._log.v(4).info("finalizers written", key=str(key), finalizers=names)
        return made

    async def _set_metadata(self, key: Key, seen: Mapping[str, str], **values: object) -> T:
        """The object after whole fields of its metadata are replaced, fenced by what was seen."""
        fields: Object = {**seen, **values}
        made: T = await self._client.patch(
            self.resource,
            key.name,
            [{"op": "add", "path": f"/metadata/{it}", "value": fields[it]} for it in fields],
            key.namespace,
            type="json",
            field_manager=self._manager,
        )
        return made

    async def _delete(self, obj: T, propagation: Propagation | None = None) -> None:
        key, seen = key_of(obj), fence(obj)
        try:
            await self._client.delete(
                self.resource,
                key.name,
                key.namespace,
                uid=seen["uid"],
                resource_version=seen["resourceVersion"],
                propagation=propagation,
            )
        except NotFound:
            return
        self._log.v(4).info("deleted", key=str(key))

    def _declared(self, write: Write) -> None:
        if write not in self._writes:
            raise UndeclaredWrite(self.resource.kind, write)

    def _whole(self, obj: Object) -> Object:
        """The object as it is created: with its apiVersion and kind, and within the selection."""
        if field := self._selection.excludes(obj):
            meta = obj["metadata"]
            name = f"{self.resource.kind} {meta.get('name') or meta.get('generateName')}"
            raise NotSelected(name, field, str(self._selection))
        return {"apiVersion": self.resource.api_version, "kind": self.resource.kind, **obj}
