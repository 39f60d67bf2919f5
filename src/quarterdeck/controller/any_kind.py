"""Objects of kinds that are known only at run time, such as those of a payload or a bundle.

There is one watch for each kind, and its cache holds only the wanted objects. If a kind has a
single wanted object, or all of them in one namespace, the watch selects only that. So looking at
settled objects makes no request, and a change is told at once.

    objects = AnyKind(client, FIELD_MANAGER, on_change=wake)
    async with objects:
        objects.want({GroupVersionKind.of(desired): [key_of(desired)]})
        followed = await objects.follow(GroupVersionKind.of(desired))
        if followed is not None:
            await followed.objects.ensure(desired)

Nothing of this follows from an operator's `setup`: it declares the rights itself.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType

from quarterdeck.api.meta import Key, Object, Resource
from quarterdeck.controller.cache_tasks import run_cache
from quarterdeck.controller.objects import Objects
from quarterdeck.controller.tasks import task_group
from quarterdeck.kube import Cache, Client, KubeError
from quarterdeck.kube.kinds import GroupVersionKind, KnownKinds

FIRST_LIST_TIMEOUT = 10.0
"""Seconds that the first list of a kind may take before it counts as unreadable."""

Listener = Callable[[GroupVersionKind, Key], None]
"""Called when a wanted object has changed; it returns at once."""


class CannotRead(KubeError):  # noqa: N818 - as the errors beside it
    """Objects of a kind could not be listed; the message gives the reason."""


class FollowedKind:
    """The wanted objects of one kind, in a cache."""

    def __init__(
        self,
        resource: Resource[Object],
        keys: frozenset[Key],
        cache: Cache[Object],
        objects: Objects[Object],
        task: "asyncio.Task[None]",
    ) -> None:
        self.resource = resource
        self.keys = keys
        self.cache = cache
        self.objects = objects
        """Reads from the cache, and all writes."""
        self.task = task


class AnyKind:
    """Watches the wanted objects of any kinds while its context is open."""

    def __init__(
        self,
        client: Client,
        field_manager: str,
        *,
        on_change: Listener,
        keep_all_managed_fields: Callable[[Resource[Object]], bool] = lambda resource: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`client` is the leader's client.

        `keep_all_managed_fields` names the kinds whose objects keep other managers' entries.
        """
        self.kinds = KnownKinds(client, clock=clock)
        self._client = client
        self._manager = field_manager
        self._on_change = on_change
        self._keep_all_managed_fields = keep_all_managed_fields
        self._clock = clock
        self._wanted: dict[GroupVersionKind, frozenset[Key]] = {}
        self._followed: dict[GroupVersionKind, FollowedKind] = {}
        self._extra: list[asyncio.Task[None]] = []
        self._stack = AsyncExitStack()
        self._tasks: asyncio.TaskGroup

    async def __aenter__(self) -> "AnyKind":
        self._tasks = await self._stack.enter_async_context(task_group())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for gvk in list(self._followed):
            self._stop(gvk)
        for task in self._extra:
            task.cancel()
        await self._stack.__aexit__(kind, error, traceback)

    def want(self, keys: Mapping[GroupVersionKind, Collection[Key]]) -> None:
        """Watch exactly these objects from now on; `follow` starts what is not watched yet."""
        self._wanted = {kind: frozenset(some) for kind, some in keys.items()}
        for kind, followed in list(self._followed.items()):
            if _scoped(self._wanted.get(kind, ()), followed.resource) != followed.keys:
                self._stop(kind)

    def followed(self, kind: GroupVersionKind) -> FollowedKind | None:
        """The wanted objects of the kind; None if their cache is not synced."""
        found = self._followed.get(kind)
        return found if found is not None and found.cache.synced else None

    async def follow(self, kind: GroupVersionKind) -> FollowedKind | None:
        """The wanted objects of the kind, listed if need be; None if the kind is not served.

        Raises `CannotRead` if they cannot be listed.
        """
        resource = await self.kinds.find(kind)
        if resource is None:
            return None
        found = self._followed.get(kind) or self._start(kind, resource)
        await self.listed(found.cache)
        return found

    async def follow_served(self) -> None:
        """Start to watch the wanted objects of each kind that is served; `follow` waits for them.

        Call it before many writes: a server that is busy with them answers a first list late.
        """
        for kind in self._wanted:
            if await self.kinds.find(kind) is None:
                break  # This was discovered just now, or a moment ago.
        for kind in self._wanted:
            resource = self.kinds.get(kind)
            if resource is not None and kind not in self._followed:
                self._start(kind, resource)

    def run_beside(self, cache: Cache[Object], name: str) -> None:
        """Keep another cache current while the context is open."""
        self._extra.append(run_cache(self._tasks, cache, name))

    async def listed(self, cache: Cache[Object]) -> None:
        """Wait for the first list of a cache; `CannotRead` if it does not come in time."""
        deadline = self._clock() + FIRST_LIST_TIMEOUT
        while not cache.synced:
            if cache.trouble or self._clock() > deadline:
                raise CannotRead(cache.trouble or f"no list of {cache.resource.plural} in time")
            await asyncio.sleep(0.02)

    def _start(self, kind: GroupVersionKind, resource: Resource[Object]) -> FollowedKind:
        if not self._wanted.get(kind):
            raise LookupError(f"no object of {kind} is wanted: call `want` before `follow`")
        keys = _scoped(self._wanted[kind], resource)
        namespaces = {key.namespace for key in keys}
        cache: Cache[Object] = Cache(
            self._client,
            resource,
            namespace=namespaces.pop() if len(namespaces) == 1 else "",
            name=next(iter(keys)).name if len(keys) == 1 else "",
            own_manager=self._manager,
            keep_all_managed_fields=self._keep_all_managed_fields(resource),
            wanted=keys.__contains__,
        )
        cache.subscribe(lambda change: self._on_change(kind, change.key))
        self._followed[kind] = FollowedKind(
            resource,
            keys,
            cache,
            Objects(resource, cache, self._client, self._manager),
            run_cache(self._tasks, cache, f"{self._manager}'s {resource.plural}"),
        )
        return self._followed[kind]

    def _stop(self, kind: GroupVersionKind) -> None:
        self._followed.pop(kind).task.cancel()


def _scoped(keys: Iterable[Key], resource: Resource[Object]) -> frozenset[Key]:
    """The keys; without their namespaces if the kind has none."""
    if resource.namespaced:
        return frozenset(keys)
    return frozenset(Key("", key.name) for key in keys)
