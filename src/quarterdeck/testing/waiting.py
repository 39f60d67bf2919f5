"""Waits of tests: look again until a condition holds, with a wide limit and a description."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")

LIMIT = 60.0
"""The most seconds of a wait, which should take well under one."""
PAUSE = 0.05
"""The fewest seconds between two looks."""
LONGEST_PAUSE = 0.5
"""The most seconds between two looks."""
SHARE = 2.0
"""A pause lasts this many times as long as the look before it: a look that starts a program, such
as kubectl, would else take the processor from what it waits for."""


def eventually(look: Callable[[], T | None], what: str, limit: float = LIMIT) -> T:
    """The first true value that `look` returns; an empty list is not true. Fails with `what`."""
    answer = until(look, bool, what, limit)
    assert answer is not None
    return answer


def until(
    look: Callable[[], T], wanted: Callable[[T], object], what: str, limit: float = LIMIT
) -> T:
    """The first wanted value that `look` returns; fails with `what` and the last value."""
    began = time.monotonic()
    deadline = began + limit
    while not wanted(seen := look()):
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"not within {limit:.0f} s: {what}; seen at last: {seen}")
        time.sleep(_pause(now - began))
        began = time.monotonic()
    return seen


@overload
async def eventually_async(
    look: Callable[[], Awaitable[T | None]], what: str, limit: float = LIMIT
) -> T: ...
@overload
async def eventually_async(look: Callable[[], T | None], what: str, limit: float = LIMIT) -> T: ...
async def eventually_async(
    look: Callable[[], T | Awaitable[T | None] | None], what: str, limit: float = LIMIT
) -> T:
    """`eventually` for an event loop; `look` may be a function or a coroutine function."""
    deadline = time.monotonic() + limit
    while True:
        began = time.monotonic()
        seen = look()
        answer = await seen if inspect.isawaitable(seen) else seen
        if answer:
            return answer
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"not within {limit:.0f} s: {what}; seen at last: {answer}")
        await asyncio.sleep(_pause(now - began))


def _pause(looked: float) -> float:
    """Seconds until the next look, after one that took so many."""
    return min(max(PAUSE, SHARE * looked), LONGEST_PAUSE)
