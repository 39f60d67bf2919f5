"""The feed of a page: who looks gets the page as it is, and each change, whoever else leaves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

from quarterdeck.console.feed import Feed, Fragments
from quarterdeck.kube import KubeError
from quarterdeck.testing.waiting import eventually_async

LIMIT = 10.0


class Page:
    """A page whose text a test sets; it can fail, and it can take long."""

    def __init__(self) -> None:
        self.text = "one"
        self.fault: Exception | None = None
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        self.changed: Callable[[], None] = lambda: None
        account: Any = SimpleNamespace(holding=self._holding)
        self.feed = Feed(account, (), self._fragments)

    @contextlib.asynccontextmanager
    async def _holding(self, _selections: Any, changed: Callable[[], None]) -> AsyncIterator[None]:
        self.changed = changed
        yield

    async def _fragments(self) -> Fragments:
        await self.may_go_on.wait()
        if self.fault is not None:
            raise self.fault
        return {"text": self.text}

    def set(self, text: str) -> None:
        self.text = text
        self.changed()


async def _next(queue: "asyncio.Queue[bytes | None]") -> bytes:
    async with asyncio.timeout(LIMIT):
        return await queue.get() or b""


def _runs(page: Page) -> bool | None:
    return None if page.feed._task is None else not page.feed._task.done()


async def test_a_viewer_gets_the_page_once_and_then_its_changes() -> None:
    page = Page()
    async with page.feed.viewing("") as first:
        assert b"event: whole" in await _next(first)
        page.set("two")
        changed = await _next(first)
        assert b"event: update" in changed
        assert b"two" in changed
        async with page.feed.viewing("") as second:
            assert b"two" in await _next(second)
            page.set("three")
            assert await _next(second) == await _next(first)
    assert page.feed._task is None


async def test_who_leaves_late_does_not_end_the_updates_of_who_comes() -> None:
    page = Page()
    leaves = asyncio.Event()

    async def slow() -> None:
        async with page.feed.viewing("") as queue:
            await _next(queue)
            page.fault = KubeError("an outage")
            page.changed()
            assert await _next(queue) == b""  # its updates have ended
            await leaves.wait()

    async def other() -> list[bytes]:
        async with page.feed.viewing("") as queue:
            whole = await _next(queue)
            page.set("two")
            return [whole, await _next(queue)]

    leaving = asyncio.create_task(slow())
    await eventually_async(lambda: _runs(page) is False, "the end of the first task")
    page.fault = None
    page.may_go_on.clear()
    coming = asyncio.create_task(other())
    await eventually_async(lambda: _runs(page), "the second task")
    leaves.set()
    await leaving
    page.may_go_on.set()
    async with asyncio.timeout(LIMIT):
        whole, changed = await coming
    assert b"one" in whole
    assert b"two" in changed


async def test_a_page_that_cannot_be_made_is_told_and_made_again() -> None:
    page = Page()
    page.fault = KubeError("an outage")
    told = ""
    try:
        async with page.feed.viewing(""):
            pass
    except KubeError as error:
        told = str(error)
    assert told == "an outage"
    page.fault = None
    async with page.feed.viewing("") as queue:
        assert b"one" in await _next(queue)
