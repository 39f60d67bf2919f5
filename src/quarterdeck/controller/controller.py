"""The controller loop: take a key, reconcile it, decide when to reconcile it again.

A reconcile gets only a key. It looks at the current state, not at what happened, so it can run at
any time and any number of times. What it raises decides what happens next:

| raised | what happens |
|---|---|
| nothing | the failures of the key are forgotten; `requeue_after` is honoured |
| `Conflict` | the object has changed: retried with back-off, logged only if it repeats |
| `InvalidSpec` | reported, logged and counted; not retried until the object changes |
| `AlreadyExists`, `Forbidden`, `Invalid` | reported, logged, counted; retried with back-off |
| `LeadershipLost` | the process ends |
| a cancellation that nobody asked for | the process ends |
| any other | logged and counted; retried with back-off |

Reported means: written into the object's condition and recorded as one event, if the controller has
a `StatusWriter`.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from quarterdeck.api.meta import Key
from quarterdeck.backoff import Backoff
from quarterdeck.controller.election import LeadershipLost
from quarterdeck.controller.faults import Fault, StatusWriter, fault_of
from quarterdeck.controller.metrics import ControllerFigures
from quarterdeck.controller.mistakes import WrongReturn, WrongWatches
from quarterdeck.controller.queue import Queue
from quarterdeck.controller.result import InvalidSpec, Result
from quarterdeck.controller.tasks import is_cancelled
from quarterdeck.controller.watch import Watch
from quarterdeck.kube import Conflict, KubeError
from quarterdeck.log import get_logger

log = get_logger("controller")

YIELD_AFTER = 0.005
"""Seconds that reconciles which never wait may run before other tasks get their turn."""

CONFLICT_WARNING_AFTER = 1.0
"""A conflict whose back-off is longer than this many seconds is logged as a warning."""

Reconcile = Callable[[Key], Awaitable[Result]]
WriteFault = Callable[[Key, Fault], Awaitable[None]]


class ControllerCrashed(Exception):  # noqa: N818 - reads as what happened
    """A controller cannot continue, so the process ends."""

    def __init__(self, controller: str, error: BaseException) -> None:
        super().__init__(f"controller {controller}: {type(error).__name__}: {error}")


class Controller:
    """A reconcile function, the watches that wake it, and its number of workers."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        watches: Sequence[Watch],
        *,
        workers: int = 1,
        needs_leader: bool = True,
        backoff: Backoff | None = None,
        at_start: Sequence[Key] = (),
        status: StatusWriter[Any] | None = None,
    ) -> None:
        """Reconcile the keys that the watches give, and those of `at_start` once at the start.

        `status` writes a fault that a reconcile raises into the status of its object.
        """
        self.name = name
        if isinstance(watches, Watch) or not all(isinstance(one, Watch) for one in watches):
            raise WrongWatches(name, watches)
        self.watches = tuple(watches)
        self.workers = workers
        self.needs_leader = needs_leader
        self.at_start = tuple(at_start)
        self.status = status
        self._reconcile = reconcile
        self._backoff = backoff
        self._queue: Queue | None = None
        self._log = log.bind(controller=name)

    def start(self, clock: Callable[[], float], write_fault: WriteFault | None = None) -> "Workers":
        """The controller's queue and workers, not yet running; `write_fault` reports faults."""
        self._queue = Queue(clock=clock, backoff=self._backoff)
        return Workers(self, self._queue, clock, write_fault)

    def wake(self, key: Key) -> None:
        """Reconcile this key soon, for a reason that no watch sees; no effect before the start."""
        if self._queue is not None:
            self._queue.add(key)

    async def reconcile(self, key: Key) -> Result:
        """The result of reconciling this key."""
        pending = self._reconcile(key)
        if not inspect.isawaitable(pending):
            raise WrongReturn(self._reconcile, pending, "define it with `async def`")
        result = await pending
        if type(result) is not Result:
            raise WrongReturn(self._reconcile, result, "return DONE or a Result")
        return result


class Workers:
    """The queue and the workers of a running controller."""

    def __init__(
        self,
        controller: Controller,
        queue: Queue,
        clock: Callable[[], float],
        write_fault: WriteFault | None = None,
    ) -> None:
        self.controller = controller
        self.queue = queue
        self.figures = ControllerFigures(controller.name, controller.workers, queue)
        self._clock = clock
        self._faults = write_fault
        self._reconcile = controller.reconcile
        self._idle: list[asyncio.Future[None]] = []
        self._draining = False
        self._log = log.bind(controller=controller.name)
        queue.on_ready = self._wake_one

    async def run(self) -> None:
        """Work until `drain` is called; raise what must end the process."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(self.controller.workers):
                tasks.create_task(self._work(), name=f"{self.controller.name} worker {number}")

    def drain(self) -> None:
        """Start no more reconciles; `run` returns when the running ones have ended."""
        self._draining = True
        while self._idle:
            self._wake_one()

    async def _work(self) -> None:
        try:
            await self._take_and_run()
        except LeadershipLost:
            raise
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            # A future that the worker awaited was cancelled: without this the worker would end
            # silently.
            raise ControllerCrashed(self.controller.name, error) from error
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
            if clock() - began > YIELD_AFTER:
                await asyncio.sleep(0)
                began = clock()

    async def _run_one(self, key: Key) -> None:
        results = self.figures.results
        try:
            after = (await self._reconcile(key)).requeue_after
        except LeadershipLost:
            raise
        except Exception as error:
            results["error"] += 1
            reported = await self._write_fault(key, error)
            if isinstance(error, InvalidSpec) and reported:
                self.queue.give_up(key)
                self.figures.terminal += 1
                self._log.warning("invalid spec", key=str(key), error=str(error))
            else:
                self._report(key, error, self.queue.retry(key))
        else:
            results["success" if after is None else "requeue_after"] += 1
            self.queue.done(key, requeue_after=after)

    async def _write_fault(self, key: Key, error: Exception) -> bool:
        """Report the error on the object, if it is about the object; False if that failed."""
        fault = fault_of(error)
        if fault is None or self._faults is None:
            return True
        try:
            await self._faults(key, fault)
        except LeadershipLost:
            raise
        except Exception as refused:
            say = self._log.v(4).info if isinstance(refused, Conflict) else self._log.warning
            say("fault not reported", key=str(key), fault=fault.message, error=str(refused))
            return False
        return True

    def _report(self, key: Key, error: Exception, delay: float) -> None:
        """Log one line for an error of the server, and a traceback for an unexpected one."""
        facts = {"key": str(key), "error": str(error), "retry_after": round(delay, 3)}
        if isinstance(error, Conflict):
            # A single conflict is normal; only repeated ones are worth a warning.
            say = self._log.warning if delay > CONFLICT_WARNING_AFTER else self._log.v(4).info
            say("conflict", **facts)
            return
        expected = isinstance(error, KubeError | InvalidSpec)
        say = self._log.error if expected else self._log.exception
        say("reconcile failed", **facts)

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
