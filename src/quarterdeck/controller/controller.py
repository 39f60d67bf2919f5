"""The loop: take a key, reconcile it, decide when to look again.

A reconcile is given only a key. It looks at what is, not at what happened, so it can run
at any time and any number of times. What it raises decides what comes next:

| raised | what happens |
|---|---|
| nothing | the failures of the key are forgotten; `requeue_after` is honoured |
| `Conflict` | somebody was faster: tried again, with back-off, without a fuss |
| `InvalidSpec` | logged and counted; not tried again until the object changes |
| `LeadershipLost` | the process ends |
| any other | logged and counted; tried again with back-off |
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from quarterdeck.api.meta import Key
from quarterdeck.controller.backoff import Backoff
from quarterdeck.controller.election import LeadershipLost
from quarterdeck.controller.metrics import ControllerFigures
from quarterdeck.controller.queue import Queue
from quarterdeck.controller.result import InvalidSpec, Result
from quarterdeck.controller.watch import Watch
from quarterdeck.kube import Conflict, KubeError
from quarterdeck.log import get_logger

log = get_logger("controller")

SLICE = 0.005
"""Seconds that reconciles which never wait may run before others get their turn."""

PATIENCE = 1.0
"""A conflict that is tried again only after more seconds than this has happened often."""

Reconcile = Callable[[Key], Awaitable[Result]]


class ControllerCrashed(Exception):  # noqa: N818 - reads as what happened
    """A controller cannot go on; the process has to end instead of limping on."""

    def __init__(self, controller: str, error: Exception) -> None:
        super().__init__(f"controller {controller}: {type(error).__name__}: {error}")


class Controller:
    """What is reconciled, what wakes it, and how many keys run at once."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        watches: Sequence[Watch[Any]],
        *,
        workers: int = 1,
        needs_leader: bool = True,
        backoff: Backoff | None = None,
        at_start: Sequence[Key] = (),
    ) -> None:
        """Reconcile what the watches say, and the keys of `at_start` once when it starts."""
        self.name = name
        self.watches = tuple(watches)
        self.workers = workers
        self.needs_leader = needs_leader
        self.at_start = tuple(at_start)
        self._reconcile = reconcile
        self._backoff = backoff
        self._queue: Queue | None = None
        self._log = log.bind(controller=name)

    def start(self, clock: Callable[[], float]) -> "Workers":
        """The controller's queue and workers, not yet running."""
        self._queue = Queue(clock=clock, backoff=self._backoff)
        return Workers(self, self._queue, clock)

    def wake(self, key: Key) -> None:
        """Reconcile this key soon, for a reason that no watch sees; nothing before the start."""
        if self._queue is not None:
            self._queue.add(key)

    async def reconcile(self, key: Key) -> Result:
        """What `reconcile` says about this key."""
        return await self._reconcile(key)


class Workers:
    """A controller at work."""

    def __init__(self, controller: Controller, queue: Queue, clock: Callable[[], float]) -> None:
        self.controller = controller
        self.queue = queue
        self.figures = ControllerFigures(controller.name, controller.workers, queue)
        self._clock = clock
        self._reconcile = controller.reconcile
        self._idle: list[asyncio.Future[None]] = []
        self._draining = False
        self._log = log.bind(controller=controller.name)
        queue.on_ready = self._wake_one

    async def run(self) -> None:
        """Work until `drain` is called; raises what no reconcile may survive."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self.controller.workers):
                tasks.create_task(self._work(), name=f"{self.controller.name} worker {number}")

    def drain(self) -> None:
        """Begin no more reconciles; `run` returns when those that run have ended."""
        self._draining = True
        while self._idle:
            self._wake_one()

    async def _work(self) -> None:
        try:
            await self._take_and_run()
        except LeadershipLost:
            raise
        except Exception as error:
            raise ControllerCrashed(self.controller.name, error) from error

    async def _take_and_run(self) -> None:
        queue, clock = self.queue, self._clock
        began = clock()
        while not self._draining:
            key = queue.take()
            if key is None:
                await self._until_woken(queue.next_due())
                began = clock()
                continue
            await self._run_one(key)
            if clock() - began > SLICE:
                await asyncio.sleep(0)
                began = clock()

    async def _run_one(self, key: Key) -> None:
        results = self.figures.results
        try:
            after = (await self._reconcile(key)).requeue_after
        except LeadershipLost:
            raise
        except InvalidSpec as fault:
            self.queue.done(key)
            results["error"] += 1
            self.figures.terminal += 1
            self._log.warning("invalid spec", key=str(key), error=str(fault))
        except Conflict as error:
            results["error"] += 1
            delay = self.queue.retry(key)
            # Somebody being faster is nothing to write about, unless it goes on and on.
            say = self._log.warning if delay > PATIENCE else self._log.v(4).info
            say("conflict", key=str(key), error=str(error), retry_after=round(delay, 3))
        except Exception as error:
            results["error"] += 1
            self._report(key, error, self.queue.retry(key))
        else:
            results["success" if after is None else "requeue_after"] += 1
            self.queue.done(key, requeue_after=after)

    def _report(self, key: Key, error: Exception, delay: float) -> None:
        """One line for what the server said; a traceback for what we did not expect."""
        say = self._log.error if isinstance(error, KubeError) else self._log.exception
        say("reconcile failed", key=str(key), error=str(error), retry_after=round(delay, 3))

    async def _until_woken(self, due: float | None) -> None:
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        self._idle.append(woken)
        timer = None
        if due is not None:
            timer = loop.call_later(max(0.0, due - self._clock()), _resolve, woken)
        try:
            await woken
        finally:
            if timer is not None:
                timer.cancel()
            if woken in self._idle:
                self._idle.remove(woken)

    def _wake_one(self) -> None:
        if self._idle:
            _resolve(self._idle.pop())


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
