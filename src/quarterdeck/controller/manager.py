"""One operator at work: what it reads, what it runs, and whether it leads.

An operator is set up with a manager: it asks it for objects and adds controllers.

    def setup(manager: Manager) -> None:
        notes = manager.objects(NOTES, writes=["status"])
        ...
        manager.add(Controller("note", reconcile, [Watch(notes)]))

`process.py` runs the managers of a process, and shares caches between them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import TYPE_CHECKING, Any

from quarterdeck.api.meta import Key, Resource
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.group import Group
from quarterdeck.controller.lease import Lease
from quarterdeck.controller.members import Common, Members, Shared
from quarterdeck.controller.selection import ALL, Selection
from quarterdeck.controller.tasks import endless, guarded
from quarterdeck.controller.uses import Use, Verb, joined, using
from quarterdeck.kube import Client
from quarterdeck.log import get_logger

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

log = get_logger("controller.manager")

LAST_EVENTS = 2.0
"""Seconds that the end of a process waits for its last events to be written."""


class Manager(Members):
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
        super().__init__(
            Common(
                operator=name,
                shared=shared,
                client=client,
                replica_client=unfenced,
                field_manager=field_manager,
                events=events,
                now=self.now,
            )
        )
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
        """This machine's time of day; for what goes into objects there is `now`."""
        self.release_version = shared.release_version
        self.watch_grace_period = shared.watch_grace_period
        """Seconds without the server after which what was seen of it counts as old."""
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
        self._common.refuse_late(f"group {name!r}")
        group = Group(name, self._common, self._known)
        self._groups.append(group)
        return group

    def declare(
        self,
        resource: Resource[Any],
        *verbs: Verb,
        selection: Selection = ALL,
        subresource: str = "",
    ) -> None:
        """Say which requests the operator makes past `objects`, with a client of its manager."""
        self._common.use(using(resource, selection, verbs, subresource))

    @property
    def uses(self) -> tuple[Use, ...]:
        """What the operator has asked for so far: the rights that it needs."""
        return joined(self._common.uses)

    def add_task(
        self, name: str, run: Callable[[], Coroutine[Any, Any, None]], *, always: bool = False
    ) -> None:
        """Run this beside the controllers while this process leads; cancelled when it stops.

        For work that lasts, of which a reconcile only says what it is to be. What it raises ends
        the process. With `always` it runs from the start, also before the caches are synced and
        whoever leads; it must not come to its end.
        """
        self._common.refuse_late(f"task {name!r}")
        (self._constant_tasks if always else self._tasks).append((name, run))

    def now(self) -> datetime:
        """The API server's time of day, which is everybody's; ours before it has answered.

        To the second: it is for what is written into objects or compared with what is in them.
        """
        return self.replica_client.server_time() or self.wall()

    @property
    def registry(self) -> "CollectorRegistry":
        """Where an operator adds metrics of its own."""
        return self._shared.metrics.registry

    def seal(self) -> None:
        """Hold the caches that this operator reads; from now on it can ask for no others."""
        self._common.sealed = True
        for key in self._caches:
            self._shared.caches.hold(key)

    def give_up(self) -> None:
        """Leave the names of its controllers to others: the operator could not be set up."""
        for members in (self, *self._groups):
            members.leave_names()

    def ready_unless(self, trouble: Callable[[], str]) -> None:
        """Be ready only while this gives no reason, in one line, why the operator cannot work."""
        self._troubles.append(trouble)

    @property
    def trouble(self) -> str:
        """Why the operator is not ready, in one line; empty when it is."""
        found = [self._awaited, *(group.trouble for group in self._groups)]
        found += [trouble() for trouble in self._troubles]
        if self._lease is not None:
            found.append(self._lease.trouble)
        return next(filter(None, found), "")

    @property
    def leads(self) -> bool:
        """Whether this process does the work of a leader now."""
        if self._common.stopping or not self._leading.is_set():
            return False
        return self._lease is None or self._lease.leads

    async def take_lease_if_free(self) -> None:
        """Lead from the start if nobody does: what is listed after that need not be proven recent.

        To be called before the caches run.
        """
        if self._lease is not None and await self._lease.take_if_free():
            self._common.led_since = time.monotonic()

    async def run(self) -> None:
        """Work until cancelled; what this raises has to end the process."""
        crash = self._common.crash = asyncio.get_running_loop().create_future()
        async with asyncio.TaskGroup() as tasks:
            self._begin(tasks, "events", self.events.run())
            self._begin(tasks, "crash", _fail_when_crashed(crash))
            for name, run in self._constant_tasks:
                self._begin(tasks, name, run())
            if self._lease is not None and self._common.led_since is not None:
                await self._keep_unless_late(tasks, self._lease)
            await self._synced()
            log.info("caches synced", operator=self.name, caches=len(self._caches))
            for group in self._groups:
                self._begin(tasks, f"group {group.name}", group.run(self._leading))
            self._launch(tasks, leader=False)
            if self._lease is not None and self._common.led_since is None:
                await self._lease.acquire()
                self._common.led_since = time.monotonic()
                self._begin(tasks, "lease", self._lease.keep())
            await self._recent()
            self._leading.set()
            self._launch(tasks, leader=True)
            if not self._common.stopping:
                self._running_tasks = [
                    tasks.create_task(guarded(name, run()), name=name) for name, run in self._tasks
                ]

    async def _keep_unless_late(self, tasks: asyncio.TaskGroup, lease: Lease) -> None:
        """Keep the Lease that was free at the start, unless the caches do not come in.

        Then somebody else may be able to work. That would be waited for as long as for a leader
        that is gone.
        """
        keeping = self._begin(tasks, "lease", lease.keep())
        try:
            async with asyncio.timeout(lease.timing.duration):
                await self._synced()
        except TimeoutError:
            log.warning("cannot work yet, handing the lease back", operator=self.name)
            keeping.cancel()
            await asyncio.wait([keeping])
            self._common.led_since = None
            await lease.release()

    async def drain(self, within: float) -> None:
        """Begin no more reconciles, and wait for those that run."""
        self._common.stopping = True
        running = [task for members in (self, *self._groups) for task in members.stop_reconciles()]
        for task in self._running_tasks:
            task.cancel()
        if running:
            _, late = await asyncio.wait(running, timeout=within)
            for task in late:
                log.warning("reconcile cut short", operator=self.name, task=task.get_name())

    async def close(self) -> None:
        """Hand the Lease back and write the last events; called when nothing runs any more."""
        if self._lease is not None:
            await self._lease.release()
        await self.events.drain(LAST_EVENTS)

    def _begin(
        self, tasks: asyncio.TaskGroup, what: str, work: Awaitable[None]
    ) -> "asyncio.Task[None]":
        """Do something that goes on until the operator stops."""
        name = f"{self.name} {what}"
        return tasks.create_task(endless(name, work), name=name)


async def _fail_when_crashed(crash: "asyncio.Future[None]") -> None:
    await crash
