"""Runs tasks whose unexpected end is an error.

A task group treats a task that ends with `CancelledError` as cancelled on purpose, and runs on
without it. But the error also comes from awaiting a future that was cancelled elsewhere: then a
worker is gone unnoticed.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager


class TaskEnded(Exception):  # noqa: N818 - reads as what happened
    """A task ended that was not cancelled and must not end."""

    def __init__(self, name: str, how: str) -> None:
        super().__init__(f"{name} {how}, and nobody asked it to")


def is_cancelled() -> bool:
    """Whether the current task was cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group from which the exception of its body comes as it is, not in a group.

    If a task has failed too, both come in a group.
    """
    raised: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as tasks:
            try:
                yield tasks
            except BaseException as error:
                raised = error
                raise
    except BaseExceptionGroup as group:
        if raised is not None and group.exceptions == (raised,):
            raise raised from None
        raise


async def guarded(name: str, work: Awaitable[None]) -> None:
    """Do the work; a `CancelledError` without a cancellation of this task is a fault."""
    try:
        await work
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise TaskEnded(name, "was cancelled from inside") from error


async def endless(name: str, work: Awaitable[None]) -> None:
    """Do work that runs until it is cancelled; any other end is a fault."""
    await guarded(name, work)
    raise TaskEnded(name, "has come to its end")
