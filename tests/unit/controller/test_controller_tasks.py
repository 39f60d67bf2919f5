"""Tasks that nobody may end unnoticed."""

import asyncio

import pytest

from quarterdeck.controller import TaskEnded
from quarterdeck.controller.tasks import endless, guarded


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
