"""An event loop in its own thread, for helpers that any kind of test can use."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TypeVar

R = TypeVar("R")

CALL_TIMEOUT = 30.0
"""The most seconds that a call may take."""


class LoopThread:
    """A loop that runs from `start` to `stop`; its methods are for other threads."""

    def __init__(self, name: str) -> None:
        """Name the thread."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)

    def start(self) -> None:
        """Run the loop."""
        self._thread.start()

    def submit(self, coroutine: Coroutine[object, object, R]) -> Future[R]:
        """Start a coroutine in the loop, and return its future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def call(self, coroutine: Coroutine[object, object, R]) -> R:
        """Run a coroutine in the loop; return its result, or raise its error."""
        return self.submit(coroutine).result(CALL_TIMEOUT)

    def stop(self) -> None:
        """Cancel all tasks of the loop, and return when they and the loop have ended."""
        self.call(cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def cancel_others() -> None:
    """Cancel all tasks of this loop but this one, and return when they have ended."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
