"""Work that nobody may end unnoticed.

A task group takes a cancelled task for one that somebody has cancelled, and goes on without it.
But a `CancelledError` also comes out of a future that was cancelled elsewhere: then a worker is
gone, and nobody knows.
"""

import asyncio
from collections.abc import Awaitable


class TaskEnded(Exception):  # noqa: N818 - reads as what happened
    """Something that has to go on has ended, and nobody asked it to."""

    def __init__(self, name: str, how: str) -> None:
        super().__init__(f"{name} {how}, and nobody asked it to")


def was_asked_to_end() -> bool:
    """Whether somebody has cancelled the task that runs now."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def guarded(name: str, work: Awaitable[None]) -> None:
    """Do the work; a cancellation that nobody asked this task for is a fault."""
    try:
        await work
    except asyncio.CancelledError as error:
        if was_asked_to_end():
            raise
        raise TaskEnded(name, "was cancelled from inside") from error


async def endless(name: str, work: Awaitable[None]) -> None:
    """Do work that goes on until it is cancelled; any other end is a fault."""
    await guarded(name, work)
    raise TaskEnded(name, "has come to its end")
