"""Tasks that nobody may end unnoticed."""

import asyncio
from collections.abc import Coroutine

import pytest

from quarterdeck.controller import TaskEnded
from quarterdeck.controller.tasks import endless, guarded, task_group


async def leaks() -> None:
    lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    lost.cancel()
    await lost


async def lasts() -> None:
    await asyncio.sleep(3600)


async def ends() -> None:
    pass


async def test_a_cancellation_from_inside_is_a_fault_that_a_task_group_sees() -> None:
    async def both() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(guarded("the lease", leaks()))
            tasks.create_task(guarded("another", lasts()))

    with pytest.raises(ExceptionGroup) as raised:
        await both()
    (fault,) = raised.value.exceptions
    assert str(fault) == "the lease was cancelled from inside, and nobody asked it to"


async def test_an_end_of_what_has_no_end_is_a_fault() -> None:
    with pytest.raises(TaskEnded, match="events has come to its end"):
        await endless("events", ends())
    await guarded("a task", ends())


@pytest.mark.parametrize("guard", [guarded, endless])
async def test_who_is_asked_to_end_ends(guard: object) -> None:
    assert callable(guard)
    task = asyncio.create_task(guard("it", lasts()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def fail_beside(*works: Coroutine[None, None, None]) -> None:
    async with task_group() as tasks:
        for work in works:
            tasks.create_task(work)
        await asyncio.sleep(0)
        raise KeyError("mine")


async def test_what_the_body_of_a_task_group_raises_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine"):
        await fail_beside(asyncio.sleep(3600))


async def test_if_a_task_fails_too_both_faults_come_out() -> None:
    async def fail() -> None:
        raise ValueError("theirs")

    with pytest.raises(ExceptionGroup) as raised:
        await fail_beside(fail())
    assert {type(error) for error in raised.value.exceptions} == {KeyError, ValueError}


async def test_a_cancelled_task_group_is_cancelled() -> None:
    async def wait() -> None:
        async with task_group():
            await asyncio.sleep(3600)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
