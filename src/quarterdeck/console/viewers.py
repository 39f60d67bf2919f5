"""Ends what viewers of a live page or a log get through their queues."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


def end_updates(queue: "asyncio.Queue[bytes | None]") -> None:
    """End a viewer's updates; those that it has not read are dropped."""
    while queue.full():
        queue.get_nowait()
    queue.put_nowait(None)
