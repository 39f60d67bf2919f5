"""The API server as the payload engine sees it: which kinds there are, their objects, writes.

One watch for each kind that the payload has, and of its objects only those that the payload is
about are held. A kind with a single object, or with all of them in one namespace, is asked for
only that. So a pass over a settled payload reads memory, and a change is known when it happens.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType

from quarterdeck.api.meta import CRDS, Key, Object, Resource
from quarterdeck.controller import Objects
from quarterdeck.kube import Cache, Client, KubeError
from quarterdeck.log import get_logger
from quarterdeck.operators.cluster_version.payload.model import Identity, Manifest
from quarterdeck.operators.cluster_version.sync.kinds import (
    GroupVersionKind,
    Kinds,
    discover,
    kinds_of_definition,
)
from quarterdeck.operators.cluster_version.sync.patience import PATIENCE
from quarterdeck.operators.cluster_version.sync.plan import FIELD_MANAGER

log = get_logger("cluster-version.sync")

DISCOVERY_INTERVAL = 2.0
"""Seconds between two questions which kinds there are, while one is missing."""
FIRST_LIST = 10.0
"""Seconds that the first list of a kind may take before it counts as unreadable."""

Listener = Callable[[Identity], None]


class CannotRead(KubeError):  # noqa: N818 - as the errors beside it
    """Objects of a kind could not be listed; the one line says why."""


class Followed:
    """The objects of one kind that the payload is about."""

    def __init__(self, client: Client, resource: Resource[Object], keys: frozenset[Key]) -> None:
        self.resource = resource
        self.keys = keys
        namespaces = {key.namespace for key in keys}
        self.cache: Cache[Object] = Cache(
            client,
            resource,
            namespace=namespaces.pop() if len(namespaces) == 1 else "",
            name=next(iter(keys)).name if len(keys) == 1 else "",
            own_manager=FIELD_MANAGER,
            # Of a definition, who else has written it decides whether we may.
            keep_all_managed_fields=resource.plural == CRDS.plural,
            wanted=keys.__contains__,
        )
        self.objects = Objects(resource, self.cache, client, FIELD_MANAGER)
        self.task: asyncio.Task[None] | None = None


class Cluster:
    """Follows the objects that a payload is about, while its context lasts."""

    def __init__(
        self,
        client: Client,
        *,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
    ) -> None:
        """Read and write through this client, the leader's."""
        self.wall = wall
        self.clock = clock
        self.patience = patience
        """For how many seconds a roll-out may stand still."""
        self._client = client
        self._kinds: Kinds = {}
        self._asked: float | None = None
        self._asking = asyncio.Lock()
        self._wanted: dict[GroupVersionKind, set[Key]] = {}
        self._followed: dict[GroupVersionKind, Followed] = {}
        self._listener: Listener | None = None
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> "Cluster":
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for gvk in list(self._followed):
            self._stop(gvk)
        try:
            await self._tasks.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            # What was raised inside goes on as itself.
            if group.exceptions != (error,):
                raise

    @contextmanager
    def following(self, manifests: Iterable[Manifest], listener: Listener) -> Iterator[None]:
        """While this lasts, the listener is told of each change of an object of these manifests."""
        if self._listener is not None:
            raise RuntimeError("two payloads cannot be run on one Cluster at the same time")
        self._want(manifests)
        self._listener = listener
        try:
            yield
        finally:
            self._listener = None

    def versions(self, gvk: GroupVersionKind) -> list[str]:
        """The versions in which the kind is served, as far as is known without asking."""
        same = (gvk.group, gvk.kind)
        return sorted(known.version for known in self._kinds if (known.group, known.kind) == same)

    def followed(self, manifest: Manifest) -> Followed | None:
        """The objects of the manifest's kind, if they are at hand."""
        found = self._followed.get(GroupVersionKind.of(manifest.object))
        return found if found is not None and found.cache.synced else None

    async def follow(self, manifest: Manifest) -> Followed | None:
        """The same, asked for if they are not; None if the server does not have the kind."""
        gvk = GroupVersionKind.of(manifest.object)
        if gvk not in self._kinds:
            await self._discover(gvk)
        resource = self._kinds.get(gvk)
        if resource is None:
            return None
        found = self._followed.get(gvk) or self._start(gvk, resource)
        deadline = self.clock() + FIRST_LIST
        while not found.cache.synced:
            if found.cache.trouble or self.clock() > deadline:
                raise CannotRead(found.cache.trouble or f"no list of {resource.plural} in time")
            await asyncio.sleep(0.02)
        return found

    async def create(self, followed: Followed, desired: Object) -> None:
        """Create an object that is not there; `AlreadyExists` if it is after all."""
        await self._client.create(followed.resource, desired, field_manager=FIELD_MANAGER)

    def learn(self, definition: Object) -> None:
        """Know the kinds of a definition that the server serves."""
        self._kinds |= kinds_of_definition(definition)

    async def _discover(self, missing: GroupVersionKind) -> None:
        async with self._asking:
            now = self.clock()
            if missing in self._kinds or (
                self._asked is not None and now - self._asked < DISCOVERY_INTERVAL
            ):
                return
            self._kinds |= await discover(self._client)
            self._asked = now
            log.v(4).info("kinds discovered", kinds=len(self._kinds))

    def _want(self, manifests: Iterable[Manifest]) -> None:
        """Follow the objects of these manifests, and no others."""
        wanted: dict[GroupVersionKind, set[Key]] = {}
        for manifest in manifests:
            keys = wanted.setdefault(GroupVersionKind.of(manifest.object), set())
            keys.add(Key(manifest.identity.namespace, manifest.identity.name))
        self._wanted = wanted
        for gvk, followed in list(self._followed.items()):
            if _keys(wanted.get(gvk, set()), followed.resource) != followed.keys:
                self._stop(gvk)

    def _start(self, gvk: GroupVersionKind, resource: Resource[Object]) -> Followed:
        followed = Followed(self._client, resource, _keys(self._wanted[gvk], resource))
        followed.cache.subscribe(lambda change: self._tell(gvk, change.key))
        followed.task = self._tasks.create_task(
            followed.cache.run(), name=f"payload's {resource.plural}"
        )
        self._followed[gvk] = followed
        return followed

    def _stop(self, gvk: GroupVersionKind) -> None:
        followed = self._followed.pop(gvk)
        if followed.task is not None:
            followed.task.cancel()

    def _tell(self, gvk: GroupVersionKind, key: Key) -> None:
        if self._listener is not None:
            self._listener(Identity(gvk.group, gvk.kind, key.namespace, key.name))


def _keys(keys: Iterable[Key], resource: Resource[Object]) -> frozenset[Key]:
    if resource.namespaced:
        return frozenset(keys)
    return frozenset(Key("", key.name) for key in keys)
