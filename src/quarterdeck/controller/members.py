"""What an operator asks for and runs together: caches, and the controllers that they wake.

A manager is such a set, which runs as long as its operator does; a `Group` is one that begins and
ends in between.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from quarterdeck.api.meta import Object, Resource, TypedObject
from quarterdeck.controller.caches import CacheKey, Caches, cache_key
from quarterdeck.controller.controller import Controller, ControllerCrashed, Tell, Workers
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.metrics import Metrics
from quarterdeck.controller.objects import Objects
from quarterdeck.controller.selection import ALL, Selection
from quarterdeck.controller.tasks import guarded
from quarterdeck.controller.telling import Teller
from quarterdeck.controller.uses import Use, Write, joined, reading, writing
from quarterdeck.kube import Cache, Change, Client
from quarterdeck.kube.cache import FOLLOW_LIMIT
from quarterdeck.kube.recency import bring_up_to
from quarterdeck.kube.store import Index
from quarterdeck.log import get_logger

log = get_logger("controller.manager")

T = TypeVar("T", bound=TypedObject | Object)


class Shared(msgspec.Struct, frozen=True, kw_only=True):
    """What the managers of one process have in common."""

    caches: Caches
    metrics: Metrics
    clock: Callable[[], float]
    wall: Callable[[], datetime]
    namespace: str
    """The only namespace that is watched; empty for all."""
    release_version: str = ""
    """The version of the release that this process belongs to; empty outside of one."""
    watch_grace_period: float = FOLLOW_LIMIT
    """Seconds for which a cache may not follow its server before its operator is not ready."""
    names: set[str] = msgspec.field(default_factory=set)
    """The controllers' names: metrics are told apart by them."""


class Common(msgspec.Struct, kw_only=True):
    """What all members of one operator work with."""

    operator: str
    shared: Shared
    client: Client
    replica_client: Client
    field_manager: str
    events: Recorder
    now: Callable[[], datetime]
    uses: list[Use] = msgspec.field(default_factory=list)
    crash: "asyncio.Future[None] | None" = None
    """Where a fault goes that has no task of its own."""
    led_since: float | None = None
    """When the Lease was taken, by `time.monotonic`; None before, and without a Lease."""
    sealed: bool = False
    """Whether the operator runs already, so that nothing can be asked for any more."""
    stopping: bool = False

    def refuse_late(self, what: str, why: str = "would never run") -> None:
        """Raise if it is too late to ask for something."""
        if self.sealed:
            raise RuntimeError(
                f"operator {self.operator} runs already, so {what} {why}: ask for it in `setup`"
            )

    def use(self, wanted: Collection[Use]) -> None:
        """Record what is asked for; raise if it is not in the operator's role and too late."""
        known = joined(self.uses)
        for use in wanted:
            if joined([*known, use]) != known:
                what = f"{' and '.join(sorted(use.verbs))} of {use.resource.plural}"
                self.refuse_late(what, "would not be in its role")
        self.uses += wanted


class Members:
    """Caches and controllers that run together."""

    def __init__(self, common: Common) -> None:
        self._common = common
        self._caches: dict[CacheKey, Cache[Any]] = {}
        self._required: set[CacheKey] = set()
        self._controllers: list[Controller] = []
        self._at_work: dict[Workers, asyncio.Task[None]] = {}
        self._subscriptions: list[Callable[[], None]] = []
        self._unproven: set[CacheKey] = set()

    def cache(
        self,
        resource: Resource[T],
        selection: Selection = ALL,
        *,
        indexes: Mapping[str, Index[T]] | None = None,
    ) -> Cache[T]:
        """The process's cache of these objects; synced before any controller runs.

        Of managedFields it keeps the process's own entries, unless all are asked for. An
        optional one is empty where the server has no such type, and then holds nothing up.
        """
        limited = structs.replace(
            selection, namespace=selection.namespace or self._common.shared.namespace
        )
        key = cache_key(resource, limited)
        if key not in self._caches:
            self._common.refuse_late(f"the cache of {key}")
        self._common.use(reading(resource, selection))
        key, cache = self._common.shared.caches.get(resource, limited, indexes=indexes)
        self._caches[key] = cache
        if not selection.optional:
            self._required.add(key)
        return cache

    def objects(
        self,
        resource: Resource[T],
        selection: Selection = ALL,
        *,
        indexes: Mapping[str, Index[T]] | None = None,
        fenced: bool = True,
        writes: Collection[Write] = (),
    ) -> Objects[T]:
        """These objects, to read from the cache and to write as this operator.

        `writes` are the calls that the operator makes on them; others raise, because its role is
        made of what is declared. Writes are those of a leader, unless they are not `fenced`: a
        controller that needs no leader writes so.
        """
        common = self._common
        cache = self.cache(resource, selection, indexes=indexes)
        common.use(writing(resource, selection, writes))
        client = common.client if fenced else common.replica_client
        return Objects(resource, cache, client, common.field_manager, writes)

    def add(self, controller: Controller) -> None:
        """Run this controller; its name is its own in the process."""
        self._common.refuse_late(f"controller {controller.name!r}")
        if controller.name in self._common.shared.names:
            raise ValueError(f"there is a controller {controller.name!r} already; rename one")
        for watch in controller.watches:
            if watch.cache not in self._known():
                raise ValueError(
                    f"controller {controller.name!r} watches {watch.cache.resource.plural} that "
                    f"were not asked of its manager; give the watch what `manager.objects` gave"
                )
        self._common.shared.names.add(controller.name)
        self._controllers.append(controller)

    def _known(self) -> Collection[Cache[Any]]:
        """The caches that run whenever these controllers do."""
        return self._caches.values()

    @property
    def _awaited(self) -> str:
        """Which cache is not there yet or lost its server, in one line; empty when all are well."""
        for key, cache in self._caches.items():
            if not cache.synced and not (cache.missing and key not in self._required):
                return f"waiting for {key}" + (f": {cache.trouble}" if cache.trouble else "")
            if cache.lost_for > self._common.shared.watch_grace_period:
                seconds = round(cache.lost_for)
                return f"could not follow {key} for {seconds} s: {cache.trouble}"
        return self._not_recent

    @property
    def _not_recent(self) -> str:
        """Which cache keeps a leader from working for long, in one line; empty when none does."""
        led_since = self._common.led_since
        if not self._unproven or led_since is None:
            return ""
        seconds = round(time.monotonic() - led_since)
        if seconds <= self._common.shared.watch_grace_period:
            return ""
        what = min(map(str, self._unproven))
        return f"leads, but could not make sure for {seconds} s that {what} is recent"

    async def _recent(self) -> None:
        """Return when the caches hold what there was when the Lease was taken, or later.

        Before that a leader does nothing: it would undo what the leader before it has done, if one
        of its own watches has fallen silent meanwhile.
        """
        since = self._common.led_since
        if since is None:
            return
        async with asyncio.TaskGroup() as tasks:
            for key, cache in self._caches.items():
                name = f"recency of {key}"
                tasks.create_task(guarded(name, self._prove(key, cache, since)), name=name)

    async def _prove(self, key: CacheKey, cache: Cache[Any], since: float) -> None:
        self._unproven.add(key)
        try:
            await bring_up_to(cache, since)
        finally:
            self._unproven.discard(key)

    async def _synced(self) -> None:
        """Return when the caches are in, as far as they have to be."""
        for key, cache in self._caches.items():
            required = key in self._required
            await (cache.wait_synced() if required else cache.wait_answered())

    def _launch(self, tasks: asyncio.TaskGroup, *, leader: bool) -> None:
        """Run the controllers that need to lead, or those that do not."""
        common = self._common
        if common.stopping:
            return
        for controller in self._controllers:
            if controller.needs_leader is not leader:
                continue
            workers = controller.start(common.shared.clock, self._teller(controller))
            common.shared.metrics.controllers.add(workers.figures)
            for watch in controller.watches:
                handler = self._guarded(controller.name, watch.handler(workers.queue.add))
                self._subscriptions.append(watch.cache.subscribe(handler))
            for key in controller.at_start:
                workers.queue.add(key)
            task = tasks.create_task(workers.run(), name=f"controller {controller.name}")
            self._at_work[workers] = task
            log.info("controller started", controller=controller.name, workers=controller.workers)

    def leave_names(self) -> None:
        """Let others have the names of these controllers, which will not run."""
        for controller in self._controllers:
            self._common.shared.names.discard(controller.name)

    def stop_reconciles(self) -> list["asyncio.Task[None]"]:
        """Begin no more reconciles; the tasks of those that still run."""
        for workers in self._at_work:
            workers.drain()
        return [task for task in self._at_work.values() if not task.done()]

    def _clear_away(self) -> None:
        """Leave nothing behind of controllers that have ended."""
        for unsubscribe in self._subscriptions:
            unsubscribe()
        self._subscriptions.clear()
        for workers in self._at_work:
            self._common.shared.metrics.controllers.remove(workers.figures)
        self._at_work.clear()

    def _teller(self, controller: Controller) -> Tell | None:
        """How the controller's objects are told what is wrong with them."""
        writer, common = controller.status, self._common
        if writer is None:
            return None
        return Teller(writer, common.events, common.now).tell

    def _guarded(
        self, controller: str, handler: Callable[[Change[T]], None]
    ) -> Callable[[Change[T]], None]:
        """The handler; a fault in it is this controller's crash, and not the cache's."""

        def handle(change: Change[T]) -> None:
            try:
                handler(change)
            except Exception as error:
                log.exception("watch failed", controller=controller, key=str(change.key))
                crash = self._common.crash
                if crash is not None and not crash.done():
                    crash.set_exception(ControllerCrashed(controller, error))

        return handle
