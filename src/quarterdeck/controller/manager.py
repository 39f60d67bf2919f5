"""One operator at work: what it reads, what it runs, and whether it leads.

An operator is set up with a manager: it asks it for objects and adds controllers.

    def setup(manager: Manager) -> None:
        notes = manager.objects(NOTES)
        ...
        manager.add(Controller("note", reconcile, [Watch(NOTES)]))

`process.py` runs the managers of a process, and shares caches between them.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from prometheus_client import CollectorRegistry

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.controller.caches import CacheKey, Caches
from quarterdeck.controller.controller import Controller, ControllerCrashed, Workers
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.lease import Lease
from quarterdeck.controller.metrics import Metrics
from quarterdeck.controller.objects import Objects
from quarterdeck.controller.watch import Watch
from quarterdeck.kube import Cache, Change, Client
from quarterdeck.kube.store import Index
from quarterdeck.log import get_logger

log = get_logger("controller.manager")

T = TypeVar("T", bound=TypedObject | Object)

LAST_EVENTS = 2.0
"""Seconds that the end of a process waits for its last events to be written."""


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
    names: set[str] = msgspec.field(default_factory=set)
    """The controllers' names: metrics are told apart by them."""


class Manager:
    """What an operator is set up with."""

    def __init__(
        self,
        name: str,
        *,
        shared: Shared,
        client: Client,
        unfenced: Client,
        field_manager: str,
        events: Recorder,
        lease: Lease | None,
        home: Key,
    ) -> None:
        self.name = name
        self.home = home
        """The operator's own namespace, and the name of its Lease there; empty without one."""
        self.client = client
        """For the writes of a leader: refuses to write when leadership has run out."""
        self.replica_client = unfenced
        """For what every replica may write."""
        self.field_manager = field_manager
        self.events = events
        self.clock = shared.clock
        self.wall = shared.wall
        self.release_version = shared.release_version
        self._shared = shared
        self._lease = lease
        self._caches: dict[CacheKey, Cache[Any]] = {}
        self._required: set[CacheKey] = set()
        self._controllers: list[Controller] = []
        self._tasks: list[tuple[str, Callable[[], Coroutine[Any, Any, None]]]] = []
        self._running_tasks: list[asyncio.Task[None]] = []
        self._at_work: dict[Workers, asyncio.Task[None]] = {}
        self._crash: asyncio.Future[None] | None = None
        self._stopping = False

    def cache(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        name: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, Index[T]] | None = None,
        all_managed_fields: bool = False,
        optional: bool = False,
    ) -> Cache[T]:
        """The process's cache of these objects; synced before any controller runs.

        Of managedFields it keeps the process's own entries, unless all are asked for. An
        optional one is empty where the server has no such type, and then holds nothing up.
        """
        key, cache = self._shared.caches.get(
            resource,
            namespace=namespace or self._shared.namespace,
            name=name,
            label_selector=label_selector,
            field_selector=field_selector,
            indexes=indexes,
            all_managed_fields=all_managed_fields,
        )
        self._caches[key] = cache
        if not optional:
            self._required.add(key)
        return cache

    def objects(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        name: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, Index[T]] | None = None,
        all_managed_fields: bool = False,
        optional: bool = False,
        fenced: bool = True,
    ) -> Objects[T]:
        """These objects, to read from the cache and to write as this operator.

        Writes are those of a leader, unless they are not `fenced`: a controller that needs no
        leader writes so.
        """
        cache = self.cache(
            resource,
            namespace=namespace,
            name=name,
            label_selector=label_selector,
            field_selector=field_selector,
            indexes=indexes,
            all_managed_fields=all_managed_fields,
            optional=optional,
        )
        client = self.client if fenced else self.replica_client
        return Objects(resource, cache, client, self.field_manager)

    def add(self, controller: Controller) -> None:
        """Run this controller; its name is its own in the process."""
        if controller.name in self._shared.names:
            raise ValueError(f"there is a controller {controller.name!r} already; rename one")
        self._shared.names.add(controller.name)
        for watch in controller.watches:
            self._cache_of(watch)
        self._controllers.append(controller)

    def add_task(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this beside the controllers while this process leads; cancelled when it stops.

        For work that lasts, of which a reconcile only says what it is to be. What it raises ends
        the process.
        """
        self._tasks.append((name, run))

    @property
    def registry(self) -> CollectorRegistry:
        """Where an operator adds metrics of its own."""
        return self._shared.metrics.registry

    @property
    def cache_keys(self) -> list[CacheKey]:
        """The caches that this operator reads."""
        return list(self._caches)

    @property
    def trouble(self) -> str:
        """Why the operator is not ready, in one line; empty when it is."""
        for key, cache in self._caches.items():
            if not cache.synced and not (cache.missing and key not in self._required):
                return f"waiting for {key}" + (f": {cache.trouble}" if cache.trouble else "")
        if self._lease is not None and self._lease.trouble:
            return self._lease.trouble
        return ""

    @property
    def leads(self) -> bool:
        """Whether this process does the work of a leader now."""
        return not self._stopping and (self._lease is None or self._lease.leads)

    async def run(self) -> None:
        """Work until cancelled; what this raises has to end the process."""
        self._crash = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.events.run(), name=f"{self.name} events")
            tasks.create_task(self._fail_when_crashed(self._crash), name=f"{self.name} crash")
            for key, cache in self._caches.items():
                required = key in self._required
                await (cache.wait_synced() if required else cache.wait_answered())
            log.info("caches synced", operator=self.name, caches=len(self._caches))
            self._start(tasks, leader=False)
            if self._lease is not None:
                await self._lease.acquire()
                tasks.create_task(self._lease.keep(), name=f"{self.name} lease")
            self._start(tasks, leader=True)

    async def drain(self, within: float) -> None:
        """Begin no more reconciles, and wait for those that run."""
        self._stopping = True
        for workers in self._at_work:
            workers.drain()
        for task in self._running_tasks:
            task.cancel()
        running = [task for task in self._at_work.values() if not task.done()]
        if running:
            _, late = await asyncio.wait(running, timeout=within)
            for task in late:
                log.warning("reconcile cut short", operator=self.name, task=task.get_name())

    async def close(self) -> None:
        """Hand the Lease back and write the last events; called when nothing runs any more."""
        if self._lease is not None:
            await self._lease.release()
        await self.events.drain(LAST_EVENTS)

    def _start(self, tasks: asyncio.TaskGroup, *, leader: bool) -> None:
        if self._stopping:
            return
        for controller in self._controllers:
            if controller.needs_leader is not leader:
                continue
            workers = controller.start(self.clock)
            self._shared.metrics.controllers.add(workers.figures)
            for watch in controller.watches:
                handler = watch.handler(workers.queue.add)
                self._cache_of(watch).subscribe(self._guarded(controller.name, handler))
            for key in controller.at_start:
                workers.queue.add(key)
            task = tasks.create_task(workers.run(), name=f"controller {controller.name}")
            self._at_work[workers] = task
            log.info("controller started", controller=controller.name, workers=controller.workers)
        if leader:
            self._running_tasks = [tasks.create_task(run(), name=name) for name, run in self._tasks]

    def _cache_of(self, watch: Watch[T]) -> Cache[T]:
        return self.cache(
            watch.resource,
            namespace=watch.namespace,
            name=watch.name,
            label_selector=watch.label_selector,
            field_selector=watch.field_selector,
            all_managed_fields=watch.all_managed_fields,
            optional=watch.optional,
        )

    def _guarded(
        self, controller: str, handler: Callable[[Change[T]], None]
    ) -> Callable[[Change[T]], None]:
        """The handler; a fault in it is this controller's crash, and not the cache's."""

        def handle(change: Change[T]) -> None:
            try:
                handler(change)
            except Exception as error:
                log.exception("watch failed", controller=controller, key=str(change.key))
                if self._crash is not None and not self._crash.done():
                    self._crash.set_exception(ControllerCrashed(controller, error))

        return handle

    async def _fail_when_crashed(self, crash: "asyncio.Future[None]") -> None:
        await crash
