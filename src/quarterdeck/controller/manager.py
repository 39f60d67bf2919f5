"""Runs one operator: its caches, its controllers, its Lease.

An operator's `setup` asks the manager for objects and adds controllers to it.

    def setup(manager: Manager) -> None:
        notes = manager.objects(NOTES, writes=["status"])
        ...
        manager.add(Controller("note", reconcile, [Watch(notes)]))

`process.py` runs the managers of a process, which share caches.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from quarterdeck.api.meta import Key, Object, Resource, TypedObject
from quarterdeck.controller.controller import Controller
from quarterdeck.controller.controller_set import ControllerSet, OperatorContext, ProcessContext
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.group import Group
from quarterdeck.controller.lease import Lease
from quarterdeck.controller.named import NamedObjects
from quarterdeck.controller.selection import ALL, Selection
from quarterdeck.controller.tasks import endless, guarded
from quarterdeck.controller.uses import Use, Verb, merged_uses, uses_of_cache, uses_of_verbs
from quarterdeck.kube import Client
from quarterdeck.log import get_logger

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

T = TypeVar("T", bound=TypedObject | Object)

log = get_logger("controller.manager")

EVENT_DRAIN_TIMEOUT = 2.0
"""Seconds that a process which ends waits for its last events to be written."""


class Manager(ControllerSet):
    """Gives an operator its objects, controllers, events and time; passed to its `setup`."""

    def __init__(
        self,
        name: str,
        *,
        shared: ProcessContext,
        client: Client,
        replica_client: Client,
        field_manager: str,
        events: Recorder,
        lease: Lease | None,
        home: Key,
    ) -> None:
        super().__init__(
            OperatorContext(
                operator=name,
                shared=shared,
                client=client,
                replica_client=replica_client,
                field_manager=field_manager,
                events=events,
                now=self.now,
            )
        )
        self.name = name
        self.home = home
        """The operator's own namespace, and the name of its account there; empty without one."""
        self.lease_key = lease.key if lease is not None else None
        """The operator's Lease, which may be in another namespace; None without leader election."""
        self.client = client
        """For the writes of the leader: it raises `LeadershipLost` when the Lease has expired."""
        self.replica_client = replica_client
        """For writes that every replica may make."""
        self.field_manager = field_manager
        self.events = events
        self.clock = shared.clock
        self.wall = shared.wall
        """This machine's time of day; use `now` for what goes into objects."""
        self.release_version = shared.release_version
        self.watch_grace_period = shared.watch_grace_period
        """Seconds without a watch after which the cached objects count as old."""
        self._shared = shared
        self._lease = lease
        self._groups: list[Group] = []
        self._troubles: list[Callable[[], str]] = []
        self._tasks: list[tuple[str, Callable[[], Coroutine[Any, Any, None]]]] = []
        self._constant_tasks: list[tuple[str, Callable[[], Coroutine[Any, Any, None]]]] = []
        self._running_tasks: list[asyncio.Task[None]] = []
        self._leading = asyncio.Event()

    def group(self, name: str) -> Group:
        """A set of caches and controllers that the operator starts and stops as it runs."""
        self._common.refuse_after_setup(f"group {name!r}")
        group = Group(name, self._common, self._watchable_caches)
        self._groups.append(group)
        return group

    def named(
        self, resource: Resource[T], controller: Controller, *, namespace: str = ""
    ) -> NamedObjects[T]:
        """Objects of this kind by name, for names that the controller's reconcile learns.

        A change of an object wakes the keys that need it. Without a namespace, the operator may
        read the objects of all namespaces.
        """
        self._common.use(uses_of_cache(resource, Selection(namespace=namespace)))
        found = NamedObjects(self.replica_client, resource, controller.wake)
        self.add_task(f"{resource.plural} watched by {controller.name}", found.run, always=True)
        return found

    def declare(
        self,
        resource: Resource[Any],
        *verbs: Verb,
        selection: Selection = ALL,
        subresource: str = "",
    ) -> None:
        """Declare requests that the operator makes with `client` or `replica_client`."""
        self._common.use(uses_of_verbs(resource, selection, verbs, subresource))

    @property
    def uses(self) -> tuple[Use, ...]:
        """The requests that the operator has declared so far: the rights that it needs."""
        return merged_uses(self._common.uses)

    def add_task(
        self, name: str, run: Callable[[], Coroutine[Any, Any, None]], *, always: bool = False
    ) -> None:
        """Run this beside the controllers while this process leads; it is cancelled at the stop.

        For long work that a reconcile only gives orders to. What the task raises ends the process.
        With `always` it runs in every replica and from the start, also before the caches are
        synced; it must not return.
        """
        self._common.refuse_after_setup(f"task {name!r}")
        (self._constant_tasks if always else self._tasks).append((name, run))

    def now(self) -> datetime:
        """The API server's time of day; this machine's until the server has answered.

        Use it for times that are written into objects or compared with them. It is up to a second
        behind, and can go back by as much.
        """
        return self.replica_client.now()

    @property
    def registry(self) -> "CollectorRegistry":
        """The registry to which an operator adds metrics of its own."""
        return self._shared.metrics.registry

    def finish_setup(self) -> None:
        """Hold the caches of this operator; from now on it cannot ask for others."""
        self._common.setup_finished = True
        for key in self._caches:
            self._shared.caches.hold(key)

    def discard(self) -> None:
        """Free the names of the controllers of an operator whose `setup` failed."""
        for members in (self, *self._groups):
            members.release_names()

    def ready_unless(self, trouble: Callable[[], str]) -> None:
        """Make the operator not ready while `trouble` returns a reason, in one line."""
        self._troubles.append(trouble)

    @property
    def trouble(self) -> str:
        """Why the operator is not ready, in one line; empty if it is ready."""
        found = [self._cache_trouble, *(group.trouble for group in self._groups)]
        found += [trouble() for trouble in self._troubles]
        if self._lease is not None:
            found.append(self._lease.trouble)
        return next(filter(None, found), "")

    @property
    def leads(self) -> bool:
        """Whether this process is the leader and its controllers run."""
        if self._common.stopping or not self._leading.is_set():
            return False
        return self._lease is None or self._lease.leads

    async def take_lease_if_free(self) -> None:
        """Acquire the Lease if it is free: a list after that is recent without a further check.

        Call it before the caches run.
        """
        if self._lease is not None and await self._lease.take_if_free():
            self._common.led_since = time.monotonic()

    async def run(self) -> None:
        """Run the operator until cancelled; what this raises must end the process."""
        crash = self._common.crash = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as tasks:
            self._begin(tasks, "events", self.events.run())
            self._begin(tasks, "crash", _fail_when_crashed(crash))
            for name, run in self._constant_tasks:
                self._begin(tasks, name, run())
            if self._lease is not None and self._common.led_since is not None:
                await self._keep_unless_late(tasks, self._lease)
            await self._wait_until_synced()
            log.info("caches synced", operator=self.name, caches=len(self._caches))
            for group in self._groups:
                self._begin(tasks, f"group {group.name}", group.run(self._leading))
            self._launch(tasks, leader=False)
            if self._lease is not None and self._common.led_since is None:
                await self._lease.acquire()
                self._common.led_since = time.monotonic()
                self._begin(tasks, "lease", self._lease.keep())
            await self._wait_until_recent()
            self._leading.set()
            self._launch(tasks, leader=True)
            if not self._common.stopping:
                self._running_tasks = [
                    tasks.create_task(guarded(name, run()), name=name) for name, run in self._tasks
                ]

    async def _keep_unless_late(self, tasks: asyncio.TaskGroup, lease: Lease) -> None:
        """Keep the Lease that was free at the start, unless the caches do not sync in time.

        Another replica may be able to sync. The limit is as long as the wait for a leader that was
        killed.
        """
        keeping = self._begin(tasks, "lease", lease.keep())
        try:
            async with asyncio.timeout(lease.timing.duration):
                await self._wait_until_synced()
        except TimeoutError:
            log.warning("cannot work yet, handing the lease back", operator=self.name)
            keeping.cancel()
            await asyncio.wait([keeping])
            self._common.led_since = None
            await lease.release()

    async def drain(self, within: float) -> None:
        """Start no more reconciles, and wait for those that run."""
        self._common.stopping = True
        running = [task for members in (self, *self._groups) for task in members.stop_reconciles()]
        for task in self._running_tasks:
            task.cancel()
        if running:
            _, late = await asyncio.wait(running, timeout=within)
            for task in late:
                log.warning("reconcile cut short", operator=self.name, task=task.get_name())

    async def close(self) -> None:
        """Release the Lease and write the last events; called when nothing runs any more."""
        if self._lease is not None:
            await self._lease.release()
        await self.events.drain(EVENT_DRAIN_TIMEOUT)

    def _begin(
        self, tasks: asyncio.TaskGroup, what: str, work: Awaitable[None]
    ) -> "asyncio.Task[None]":
        """Start a task that runs until the operator stops."""
        name = f"{self.name} {what}"
        return tasks.create_task(endless(name, work), name=name)


async def _fail_when_crashed(crash: "asyncio.Future[None]") -> None:
    await crash
