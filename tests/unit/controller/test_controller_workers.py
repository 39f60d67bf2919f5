"""A controller's workers in an event loop, without a server."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

import pytest

from quarterdeck.api.meta import Key
from quarterdeck.controller import (
    DONE,
    Backoff,
    Controller,
    ControllerCrashed,
    Fault,
    InvalidSpec,
    LeadershipLost,
    Result,
)
from quarterdeck.controller.controller import Workers, WriteFault
from quarterdeck.controller.faults import fault_of
from quarterdeck.controller.queue import Queue
from quarterdeck.kube import AlreadyExists, Conflict, Forbidden
from quarterdeck.kube.errors import Status, api_error

BY_ROLE = "allow it in the operator's role"
BY_RULE = "change what the object asks for, or what forbids it"
A, B, C = (Key("ns", name) for name in "abc")
Reconcile = Callable[[Key], Awaitable[Result]]


@asynccontextmanager
async def at_work(
    reconcile: Reconcile, workers: int = 1, write_fault: WriteFault | None = None
) -> AsyncIterator[Workers]:
    controller = Controller(
        "test", reconcile, [], workers=workers, backoff=Backoff(base=0.001, limit=0.01)
    )
    running = controller.start(time.monotonic, write_fault)
    task = asyncio.create_task(running.run())
    try:
        async with asyncio.timeout(30):
            yield running
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Script:
    """A reconcile that does what it is told, run by run, and tells when it has run."""

    def __init__(self, *steps: Exception | Result) -> None:
        self._steps = list(steps)
        self.seen: list[Key] = []
        self._ran = asyncio.Condition()

    async def __call__(self, key: Key) -> Result:
        self.seen.append(key)
        async with self._ran:
            self._ran.notify_all()
        step = self._steps.pop(0) if self._steps else DONE
        if isinstance(step, Exception):
            raise step
        return step

    async def until(self, runs: int) -> None:
        async with self._ran:
            await self._ran.wait_for(lambda: len(self.seen) >= runs)


async def test_a_failure_is_counted_and_tried_again_until_it_works() -> None:
    script = Script(RuntimeError("once"), RuntimeError("twice"))
    async with at_work(script) as workers:
        workers.queue.add(A)
        await script.until(3)
        await asyncio.sleep(0)
    assert workers.figures.results == {"success": 1, "requeue_after": 0, "error": 2}


async def test_requeue_after_runs_the_key_again() -> None:
    script = Script(Result(requeue_after=0.01))
    async with at_work(script) as workers:
        workers.queue.add(A)
        await script.until(2)
    assert script.seen == [A, A]
    assert workers.figures.results["requeue_after"] == 1


async def test_an_invalid_spec_is_not_tried_again() -> None:
    script = Script(InvalidSpec("spec.size", -1, "give a positive number"))
    async with at_work(script) as workers:
        workers.queue.add(A)
        await script.until(1)
        workers.queue.add(B)
        await script.until(2)
        assert workers.queue.next_due() is None
    assert workers.figures.terminal == 1
    assert workers.figures.results["error"] == 1


async def test_a_conflict_is_tried_again() -> None:
    script = Script(Conflict("PATCH", "/x", Status(code=409, reason="Conflict")))
    async with at_work(script) as workers:
        workers.queue.add(A)
        await script.until(2)
    assert script.seen == [A, A]


async def test_lost_leadership_ends_the_workers() -> None:
    controller = Controller("test", Script(LeadershipLost("gone")), [])
    workers = controller.start(time.monotonic)
    workers.queue.add(A)
    with pytest.raises(ExceptionGroup) as raised:
        await workers.run()
    assert raised.group_contains(LeadershipLost)


async def test_a_fault_of_the_loop_itself_names_the_controller() -> None:
    """It is not a failed reconcile, and nothing can be trusted after it."""

    class BrokenQueue(Queue):
        def take(self) -> Key | None:
            raise ZeroDivisionError("broken")

    workers = Workers(
        Controller("test", Script(), []), BrokenQueue(clock=time.monotonic), time.monotonic
    )
    with pytest.raises(ExceptionGroup) as raised:
        await workers.run()
    assert raised.group_contains(ControllerCrashed, match="controller test: ZeroDivisionError")


async def test_a_reconcile_that_forgets_its_result_is_a_failure_of_that_key_alone() -> None:
    script = Script(cast("Result", None))
    async with at_work(script) as workers:
        workers.queue.add(A)
        await script.until(2)
    assert workers.figures.results["error"] == 1


async def test_as_many_keys_run_at_once_as_there_are_workers() -> None:
    inside, most, done = 0, 0, 0
    all_in, release, all_done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def reconcile(key: Key) -> Result:
        nonlocal inside, most, done
        inside += 1
        most = max(most, inside)
        if inside == 3:
            all_in.set()
        await release.wait()
        inside -= 1
        done += 1
        if done == 9:
            all_done.set()
        return DONE

    async with at_work(reconcile, workers=3) as workers:
        for number in range(9):
            workers.queue.add(Key("ns", str(number)))
        await all_in.wait()
        release.set()
        await all_done.wait()
    assert most == 3


async def test_draining_ends_what_runs_and_begins_nothing() -> None:
    began, release = asyncio.Event(), asyncio.Event()
    ended: list[Key] = []

    async def reconcile(key: Key) -> Result:
        began.set()
        await release.wait()
        ended.append(key)
        return DONE

    controller = Controller("test", reconcile, [], workers=1)
    workers = controller.start(time.monotonic)
    task = asyncio.create_task(workers.run())
    workers.queue.add(A)
    await began.wait()
    workers.queue.add(B)
    workers.drain()
    release.set()
    async with asyncio.timeout(30):
        await task
    assert ended == [A]


async def test_idle_workers_drain_at_once() -> None:
    workers = Controller("test", Script(), [], workers=4).start(time.monotonic)
    task = asyncio.create_task(workers.run())
    await asyncio.sleep(0)
    workers.drain()
    async with asyncio.timeout(30):
        await task


async def test_reconciles_that_never_wait_let_others_have_their_turn() -> None:
    turns = 0

    async def somebody_else() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    last = asyncio.Event()

    async def reconcile(key: Key) -> Result:
        # Stands for work that never awaits, which this test is about.
        time.sleep(0.001)  # noqa: ASYNC251
        if key.name == "199":
            last.set()
        return DONE

    async with at_work(reconcile) as workers:
        other = asyncio.create_task(somebody_else())
        before = turns
        for number in range(200):
            workers.queue.add(Key("ns", str(number)))
        await last.wait()
        assert turns - before > 10
        other.cancel()


async def test_a_controller_can_be_woken_for_what_no_watch_sees() -> None:
    """Before it has started there is nobody to wake."""
    script = Script()
    controller = Controller("test", script, [])
    controller.wake(A)
    running = controller.start(time.monotonic)
    task = asyncio.create_task(running.run())
    controller.wake(B)
    async with asyncio.timeout(30):
        await script.until(1)
    running.drain()
    await task
    assert script.seen == [B]


async def test_a_worker_that_is_cancelled_from_inside_is_a_crash() -> None:
    """A future that was cancelled elsewhere must not take a worker away unnoticed."""

    async def reconcile(key: Key) -> Result:
        lost: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        lost.cancel()
        return await lost

    workers = Controller("test", reconcile, [], workers=2).start(time.monotonic)
    workers.queue.add(A)
    async with asyncio.timeout(30):
        with pytest.raises(ExceptionGroup) as raised:
            await workers.run()
    (crash,) = raised.value.exceptions
    assert isinstance(crash, ControllerCrashed)
    assert "CancelledError" in str(crash)


async def test_workers_that_are_cancelled_end_without_a_fault() -> None:
    async def reconcile(key: Key) -> Result:
        await asyncio.sleep(3600)
        return DONE

    workers = Controller("test", reconcile, []).start(time.monotonic)
    workers.queue.add(A)
    task = asyncio.create_task(workers.run())
    async with asyncio.timeout(30):
        while not workers.queue.running:  # noqa: ASYNC110
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class Telling:
    """What was told, and how often that fails first."""

    def __init__(self, failures: int = 0) -> None:
        self.faults: list[Fault] = []
        self._failures = failures

    async def __call__(self, key: Key, fault: Fault) -> None:
        if self._failures:
            self._failures -= 1
            raise Conflict("PATCH", "/x", Status(code=409, message="changed"))
        self.faults.append(fault)


async def test_an_invalid_spec_is_told_once_and_not_tried_again() -> None:
    script, telling = Script(InvalidSpec("spec.a", 1, "make it 2")), Telling()
    async with at_work(script, write_fault=telling) as workers:
        workers.queue.add(A)
        await script.until(1)
        await asyncio.sleep(0.05)
    assert telling.faults == [Fault("InvalidSpec", "spec.a: 1: make it 2")]
    assert script.seen == [A]


async def test_an_invalid_spec_that_could_not_be_told_is_tried_again() -> None:
    bad = InvalidSpec("spec.a", 1, "make it 2")
    script, telling = Script(bad, bad), Telling(failures=1)
    async with at_work(script, write_fault=telling) as workers:
        workers.queue.add(A)
        await script.until(2)
        await asyncio.sleep(0.05)
    assert len(telling.faults) == 1
    assert workers.figures.terminal == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        pytest.param(
            AlreadyExists("POST", "/x", Status(code=409, reason="AlreadyExists", message="taken")),
            [Fault("AlreadyExists", "taken: rename one of the two")],
            id="a name that is taken",
        ),
        pytest.param(
            Forbidden("POST", "/x", Status(code=403, reason="Forbidden", message="no")),
            [Fault("Forbidden", "no: allow it in the operator's role")],
            id="a right that is missing",
        ),
        *(
            pytest.param(
                Forbidden("POST", "/x", Status(code=403, reason="Forbidden", message=message)),
                [Fault("Forbidden", f"{message}: {remedy}")],
                id=message,
            )
            for message, remedy in (
                ('pods "x" is forbidden: User "u" cannot create resource "pods"', BY_ROLE),
                ('roles "x" is forbidden: user "u" is attempting to grant RBAC rights', BY_ROLE),
                ('pods "x" is forbidden: cannot set blockOwnerDeletion if ...', BY_ROLE),
                ('pods "x" is forbidden: exceeded quota: q, requested: pods=1', BY_RULE),
                ('pods "x" is forbidden: violates PodSecurity "restricted"', BY_RULE),
                ('pods "x" is forbidden: unable to create new content in namespace n', BY_RULE),
                ('admission webhook "w" denied the request: not here', BY_RULE),
            )
        ),
        pytest.param(
            Conflict("PATCH", "/x", Status(code=409, reason="Conflict", message="changed")),
            [],
            id="not somebody who was faster",
        ),
        pytest.param(RuntimeError("ours"), [], id="not a fault of ours"),
    ],
)
async def test_refusals_are_told_and_tried_again(error: Exception, told: list[Fault]) -> None:
    script, telling = Script(error), Telling()
    async with at_work(script, write_fault=telling) as workers:
        workers.queue.add(A)
        await script.until(2)
    assert telling.faults == told


@pytest.mark.parametrize(
    ("error", "reason", "begins", "ends"),
    [
        pytest.param(
            InvalidSpec("spec.a", "x" * 1_000_000, "make it short"),
            "InvalidSpec",
            "spec.a: 'xxx",
            "…: make it short",
            id="a huge value",
        ),
        pytest.param(
            InvalidSpec("spec.\ud800", "\x1b[31m", "\x00"),
            "InvalidSpec",
            "spec.\ufffd: '\\x1b[31m'",
            "\ufffd",
            id="what is no text",
        ),
        pytest.param(
            Forbidden("POST", "/x", Status(code=403, reason="not: by me!", message="m" * 100_000)),
            "Forbidden",
            "mmm",
            "…: allow it in the operator's role",
            id="the words of somebody's webhook",
        ),
        pytest.param(
            api_error("POST", "/x", 413, b'{"kind":"Status","message":"too large"}'),
            "Invalid",
            "too large",
            "change what the object asks for",
            id="an object that is too large",
        ),
    ],
)
def test_a_fault_is_told_in_words_that_any_condition_takes(
    error: Exception, reason: str, begins: str, ends: str
) -> None:
    fault = fault_of(error)
    assert fault is not None
    assert fault.reason == reason
    assert fault.message.startswith(begins)
    assert fault.message.endswith(ends)
    assert len(fault.message.encode()) < 32768
