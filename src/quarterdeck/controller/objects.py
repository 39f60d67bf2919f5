"""Reads and writes the objects of one kind for an operator.

Reads come from the cache. A write happens only if the cached object differs. It is fenced, so that
a leader which has been replaced cannot undo its successor's work with a late request:

- An object that does not exist is created with POST, never by an apply.
- An object that exists is applied with its uid and resource version. With the version
  alone a server-side apply recreates a deleted object (tried: 201); with the uid it is
  refused (409).
- One case remains, a late create: if the new leader has deleted an object for good, a create
  of the old leader that arrives after that brings it back. The new leader sees it through its
  watch and reconciles again.

Who owns a created object's fields (measured on Kubernetes 1.36.4): the API server ignores the
managedFields that a POST carries, and records what is created, its own defaults too, as ours with
the operation Update; a later apply records a second entry under the same name and leaves the first
as it is, so a created field that is no longer wanted would stay. Turning the first entry into an
Apply entry, as kubectl does, helps but is a request of its own. It is sent only if a created field
is no longer wanted, which `quarterdeck.kube.compare` tells from the server's defaults. An apply
that can only create (with a resourceVersion that matches nothing) would avoid the request, but was
15 to 50 % slower than a POST.
"""

from collections.abc import Callable, Collection
from hashlib import blake2b
from typing import TypeVar

import msgspec

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.controller.handle import Handle
from quarterdeck.controller.merge import has_null_in_list, json_patch, merge_patch
from quarterdeck.controller.metadata import as_plain, controller_of, fence, key_of
from quarterdeck.controller.ownership import as_applied
from quarterdeck.controller.selection import ALL, Selection
from quarterdeck.controller.uses import WRITES, Write
from quarterdeck.kube import AlreadyExists, Cache, Change, Client, covers, differences

T = TypeVar("T", bound=TypedObject | Object)


class Objects(Handle[T]):
    """The objects of one kind, for one operator: reads from the cache, and writes."""

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
        super().__init__(resource, cache, client, field_manager, writes, selection)
        # By key: the resource version in which the object was as desired, by comparison or by the
        # answer to our apply, and a digest of the desired object. It saves most comparisons, and
        # prevents endless writes if the server stores a value in a form that the comparison does
        # not know.
        self._settled: dict[Key, tuple[str, bytes]] = {}
        self._unsubscribe: Callable[[], None] | None = None

    async def ensure(self, desired: Object, *, seen: T | None = None) -> Object:
        """Make the object as desired and return it; nothing is written if it is so already.

        `desired` has every field that we own and no other: a field that was in it before and is
        missing now is removed, and fields of others stay. Raises `AlreadyExists` if an object of
        that name has another controller.

        A caller that has decided by the object whether to write it gives it as `seen`: `Conflict`
        if it has changed since then. Otherwise what the cache has now counts.
        """
        self._declared("ensure")
        key = key_of(desired)
        current = seen if seen is not None else self.cache.get(key)
        wanted = _digest(desired)
        if current is None:
            live, is_new = await self._created(desired, key)
            # Nobody else has written to it, so the values alone tell whether it is as desired.
            if is_new and covers(live, desired):
                self._remember(key, live, wanted)
                return live
        else:
            live = as_plain(current)
        if self._settled.get(key) == (_version(live), wanted):
            return live
        changed, left = differences(live, desired, self._manager)
        if not changed and not left:
            self._remember(key, live, wanted)
            return live
        if left:
            live = await self._with_applied_fields(key, live)
        meta = {**desired["metadata"], **fence(live)}
        answer = await self._client.apply(
            self.resource, {**desired, "metadata": meta}, field_manager=self._manager
        )
        applied = as_plain(answer)
        self._remember(key, applied, wanted)
        if fence(applied) == fence(live):
            self._log.info("apply changed nothing", key=str(key), compared=[*changed, *left])
        else:
            self._log.v(4).info("applied", key=str(key), changed=[*changed, *left])
        return applied

    async def set_status(self, obj: T, status: msgspec.Struct | Object) -> bool:
        """Write the status of the object if it differs; return whether it was written."""
        self._declared("status")
        was = obj.get("status") if isinstance(obj, dict) else getattr(obj, "status", None)
        if was == status:
            return False
        before = msgspec.to_builtins(was) or {}
        patch = merge_patch(before, msgspec.to_builtins(status))
        if not patch:
            return False
        key = key_of(obj)
        await self._client.patch(
            self.resource,
            key.name,
            _status_operations(obj, before, patch)
            if has_null_in_list(patch)
            else {"metadata": fence(obj), "status": patch},
            key.namespace,
            type="json" if has_null_in_list(patch) else "merge",
            subresource="status",
            field_manager=self._manager,
        )
        self._log.v(4).info("status written", key=str(key))
        return True

    def stop_following(self) -> None:
        """End the subscription to the cache; for objects that are no longer used."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
            self._settled.clear()

    def _remember(self, key: Key, settled: Object, wanted: bytes) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = self.cache.subscribe(self._forget_deleted)
        if self.cache.get(key) is not None:  # or it is deleted already
            self._settled[key] = (_version(settled), wanted)

    def _forget_deleted(self, change: Change[T]) -> None:
        if change.new is None:
            self._settled.pop(change.key, None)

    async def _created(self, desired: Object, key: Key) -> tuple[Object, bool]:
        """The object, and whether we created it now; it may exist already, and be ours."""
        try:
            made = await self._client.create(
                self.resource, self._whole(desired), field_manager=self._manager
            )
        except AlreadyExists:
            found: T = await self._client.get(self.resource, key.name, key.namespace)
            wanted, has = controller_of(desired), controller_of(found)
            if wanted is None or has is None or wanted.uid != has.uid:
                raise
            return as_plain(found), False
        self._log.v(4).info("created", key=str(key))
        return as_plain(made), True

    async def _with_applied_fields(self, key: Key, live: Object) -> Object:
        """The object with the fields that we created recorded as applied by us."""
        # The cache keeps only our own entries, but all have to be written. The fence has the
        # version that the decision was made on, not the one that is read now.
        found: T = await self._client.get(self.resource, key.name, key.namespace)
        entries = as_applied(as_plain(found)["metadata"]["managedFields"], self._manager)
        return as_plain(await self._set_metadata(key, fence(live), managedFields=entries))


def _version(obj: Object) -> str:
    version: str = obj["metadata"]["resourceVersion"]
    return version


def _digest(desired: Object) -> bytes:
    return blake2b(msgspec.json.encode(desired), digest_size=16).digest()


def _status_operations(obj: TypedObject | Object, before: Object, patch: Object) -> list[Object]:
    """A fenced JSON patch of the status, for values that a merge patch cannot express."""
    fences = [
        {"op": "replace", "path": f"/metadata/{field}", "value": value}
        for field, value in fence(obj).items()
    ]
    # An object without a status has no parent to add fields to.
    first = [] if before else [{"op": "add", "path": "/status", "value": {}}]
    return [*fences, *first, *json_patch(before, patch, "/status")]
