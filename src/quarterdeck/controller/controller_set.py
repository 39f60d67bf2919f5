"""Caches, and the controllers that they wake, which run together.

A manager is a set that runs as long as its operator; a `Group` is a set that starts and stops while
the operator runs.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from quarterdeck.api.meta import Object, Resource, TypedObject
from quarterdeck.controller.caches import CacheKey, Caches, cache_key
from quarterdeck.controller.controller import Controller, ControllerCrashed, Workers, WriteFault
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.faults import FaultWriter
from quarterdeck.controller.joined_cache import JoinedCache
from quarterdeck.controller.metrics import Metrics
from quarterdeck.controller.objects import Objects
from quarterdeck.controller.selection import ALL, Selection
from quarterdeck.controller.tasks import guarded
from quarterdeck.controller.uses import Use, Write, merged_uses, uses_of_cache, uses_of_writes
from quarterdeck.kube import Cache, Change, Client
from quarterdeck.kube.cache import WATCH_GRACE_PERIOD
from quarterdeck.kube.recency import ensure_recent
from quarterdeck.kube.store import Index
from quarterdeck.log import get_logger

log = get_logger("controller.manager")

T = TypeVar("T", bound=TypedObject | Object)


class ProcessContext(msgspec.Struct, frozen=True, kw_only=True):
    """What all managers of a process share."""

    caches: Caches
    metrics: Metrics
    clock: Callable[[], float]
    wall: Callable[[], datetime]
    namespaces: tuple[str, ...]
    """The only namespaces that are watched; all if empty."""
    release_version: str = ""
    """The version of the process's release; empty outside of a release."""
    watch_grace_period: float = WATCH_GRACE_PERIOD
    """Seconds that a cache may be without its watch before its operator is not ready."""
    names: set[str] = msgspec.field(default_factory=set)
    """The names of the controllers, which are unique because they are a label of the metrics."""


class OperatorContext(msgspec.Struct, kw_only=True):
    """What the manager and the groups of one operator share."""

    operator: str
    shared: ProcessContext
    client: Client
    replica_client: Client
    field_manager: str
    events: Recorder
    now: Callable[[], datetime]
    uses: list[Use] = msgspec.field(default_factory=list)
    crash: "asyncio.Future[None] | None" = None
    """Carries an exception out of a watch handler, which runs in no task of the operator."""
    led_since: float | None = None
    """When the Lease was acquired, by `time.monotonic`; None before that, or without a Lease."""
    setup_finished: bool = False
    """Whether the operator runs, so that it can ask for nothing more."""
    stopping: bool = False

    def refuse_after_setup(self, what: str, why: str = "would never run") -> None:
        """Raise if `setup` has finished, because it is too late to ask for this."""
        if self.setup_finished:
            raise RuntimeError(
                f"operator {self.operator} runs already, so {what} {why}: ask for it in `setup`"
            )

    def use(self, wanted: Collection[Use]) -> None:
        """Record these requests; after `setup`, raise if they need more rights."""
        known = merged_uses(self.uses)
        for use in wanted:
            if merged_uses([*known, use]) != known:
                what = f"{' and '.join(sorted(use.verbs))} of {use.resource.plural}"
                self.refuse_after_setup(what, "would not be in its role")
        self.uses += wanted


class ControllerSet:
    """Caches and controllers that run together."""

    def __init__(self, common: OperatorContext) -> None:
        self._common = common
        self._caches: dict[CacheKey, Cache[Any]] = {}
        self._joined: dict[CacheKey, JoinedCache[Any]] = {}
        self._required: set[CacheKey] = set()
        self._controllers: list[Controller] = []
        self._running: dict[Workers, asyncio.Task[None]] = {}
        self._subscriptions: list[Callable[[], None]] = []
        self._not_recent_yet: set[CacheKey] = set()

    def cache(
        self,
        resource: Resource[T],
        selection: Selection = ALL,
        *,
        indexes: Mapping[str, Index[T]] | None = None,
    ) -> Cache[T]:
        """The process's cache of these objects, which is synced before a controller runs.

        It keeps only the process's own managedFields, unless the selection has
        `all_managed_fields`. An optional cache is empty while the resource type is not installed,
        and controllers do not wait for it. In a process that is limited to several namespaces it
        reads one cache for each of them.
        """
        parts = {
            limited.namespace: self._single_cache(resource, limited, indexes)
            for limited in self._limited(resource, selection)
        }
        if len(parts) == 1:
            (only,) = parts.values()
            return only
        key = cache_key(resource, selection)
        return self._joined.setdefault(
            key, JoinedCache(self._common.replica_client, resource, parts)
        )

    def _single_cache(
        self, resource: Resource[T], limited: Selection, indexes: Mapping[str, Index[T]] | None
    ) -> Cache[T]:
        key = cache_key(resource, limited)
        if key not in self._caches:
            self._common.refuse_after_setup(f"the cache of {key}")
        self._common.use(uses_of_cache(resource, limited))
        key, cache = self._common.shared.caches.get(resource, limited, indexes=indexes)
        self._caches[key] = cache
        if not limited.optional:
            self._required.add(key)
        return cache

    def objects(
        self,
        resource: Resource[T],
        selection: Selection = ALL,
        *,
        indexes: Mapping[str, Index[T]] | None = None,
        leader_only: bool = True,
        writes: Collection[Write] = (),
        role: str = "",
    ) -> Objects[T]:
        """These objects: reads come from the cache, writes are made as this operator.

        `writes` declares the calls that the operator makes; a call that is not declared raises,
        because the role follows from what is declared. Only the leader writes. With
        `leader_only=False` every replica does: for a controller with `needs_leader=False`. With
        `role`, the writes are allowed by a ClusterRole of that name after the operator's, which is
        delivered without a binding: the operator binds it in the namespaces that it makes.
        """
        common = self._common
        cache = self.cache(resource, selection, indexes=indexes)
        for limited in self._limited(resource, selection):
            common.use(uses_of_writes(resource, limited, writes, role))
        client = common.client if leader_only else common.replica_client
        return Objects(resource, cache, client, common.field_manager, writes, selection)

    def _limited(self, resource: Resource[T], selection: Selection) -> list[Selection]:
        namespaces = self._common.shared.namespaces if resource.namespaced else ()
        return selection.within(namespaces)

    def add(self, controller: Controller) -> None:
        """Run this controller; its name must be unique in the process."""
        self._common.refuse_after_setup(f"controller {controller.name!r}")
        if controller.name in self._common.shared.names:
            raise ValueError(f"there is a controller {controller.name!r} already; rename one")
        for watch in controller.watches:
            if watch.cache not in self._watchable_caches():
                raise ValueError(
                    f"controller {controller.name!r} watches {watch.cache.resource.plural} that "
                    f"were not asked of its manager; give the watch what `manager.objects` gave"
                )
        self._common.shared.names.add(controller.name)
        self._controllers.append(controller)

    def _watchable_caches(self) -> Collection[Cache[Any]]:
        """The caches that run whenever these controllers run."""
        return [*self._caches.values(), *self._joined.values()]

    @property
    def _cache_trouble(self) -> str:
        """Which cache is not synced or has lost its watch, in one line; empty if none."""
        for key, cache in self._caches.items():
            if not cache.synced and not (cache.missing and key not in self._required):
                return f"waiting for {key}" + (f": {cache.trouble}" if cache.trouble else "")
            if cache.lost_for > self._common.shared.watch_grace_period:
                seconds = round(cache.lost_for)
                return f"could not follow {key} for {seconds} s: {cache.trouble}"
        return self._recency_trouble

    @property
    def _recency_trouble(self) -> str:
        """Which cache has kept the leader from working for long, in one line; empty if none."""
        led_since = self._common.led_since
        if not self._not_recent_yet or led_since is None:
            return ""
        seconds = round(time.monotonic() - led_since)
        if seconds <= self._common.shared.watch_grace_period:
            return ""
        what = min(map(str, self._not_recent_yet))
        return f"leads, but could not make sure for {seconds} s that {what} is recent"

    async def _wait_until_recent(self) -> None:
        """Return when the caches are as recent as the Lease.

        The leader does not write before that: if one of its watches has stopped sending, it would
        undo the writes of the leader before it.
        """
        since = self._common.led_since
        if since is None:
            return
        async with asyncio.TaskGroup() as tasks:
            for key, cache in self._caches.items():
                name = f"recency of {key}"
                tasks.create_task(
                    guarded(name, self._bring_up_to_date(key, cache, since)), name=name
                )

    async def _bring_up_to_date(self, key: CacheKey, cache: Cache[Any], since: float) -> None:
        self._not_recent_yet.add(key)
        try:
            await ensure_recent(cache, since)
        finally:
            self._not_recent_yet.discard(key)

    async def _wait_until_synced(self) -> None:
        """Return when the required caches are synced and the server has answered for the others."""
        for key, cache in self._caches.items():
            required = key in self._required
            await (cache.wait_synced() if required else cache.wait_answered())

    def _launch(self, tasks: asyncio.TaskGroup, *, leader: bool) -> None:
        """Start the controllers that need a leader, or those that do not."""
        common = self._common
        if common.stopping:
            return
        for controller in self._controllers:
            if controller.needs_leader is not leader:
                continue
            workers = controller.start(common.shared.clock, self._fault_writer(controller))
            common.shared.metrics.controllers.add(workers.figures)
            for watch in controller.watches:
                handler = self._guarded(controller.name, watch.handler(workers.queue.add))
                self._subscriptions.append(watch.cache.subscribe(handler))
            for key in controller.at_start:
                workers.queue.add(key)
            task = tasks.create_task(workers.run(), name=f"controller {controller.name}")
            self._running[workers] = task
            log.info("controller started", controller=controller.name, workers=controller.workers)

    def release_names(self) -> None:
        """Free the names of these controllers, which will not run."""
        for controller in self._controllers:
            self._common.shared.names.discard(controller.name)

    def stop_reconciles(self) -> list["asyncio.Task[None]"]:
        """Start no more reconciles; return the tasks of the controllers that still run."""
        for workers in self._running:
            workers.drain()
        return [task for task in self._running.values() if not task.done()]

    def _remove_controllers(self) -> None:
        """Remove the subscriptions and metrics of controllers that have ended."""
        for unsubscribe in self._subscriptions:
            unsubscribe()
        self._subscriptions.clear()
        for workers in self._running:
            self._common.shared.metrics.controllers.remove(workers.figures)
        self._running.clear()

    def _fault_writer(self, controller: Controller) -> WriteFault | None:
        """The function that reports faults on the controller's objects; None if it has none."""
        writer, common = controller.status, self._common
        if writer is None:
            return None
        return FaultWriter(writer, common.events, common.now).write_fault

    def _guarded(
        self, controller: str, handler: Callable[[Change[T]], None]
    ) -> Callable[[Change[T]], None]:
        """The handler, wrapped: an exception in it crashes this controller, not the cache."""

        def handle(change: Change[T]) -> None:
            try:
                handler(change)
            except Exception as error:
                log.exception("watch failed", controller=controller, key=str(change.key))
                crash = self._common.crash
                if crash is not None and not crash.done():
                    crash.set_exception(ControllerCrashed(controller, error))

        return handle
