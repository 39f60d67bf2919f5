"""What runs behind live pages: a cancellation that nobody asked for ends none of it unnoticed."""

import asyncio
from typing import NoReturn

import pytest

from quarterdeck.console.account import ConsoleAccount
from quarterdeck.console.app import _every
from quarterdeck.console.feed import Feed, Fragments
from quarterdeck.console.log_tail import LogTail
from quarterdeck.controller.tasks import TaskEnded
from quarterdeck.kube import Client, Connection


@pytest.fixture
def account() -> ConsoleAccount:
    """An account whose API server nobody asks."""
    return ConsoleAccount(Client(Connection(server="http://127.0.0.1:1", tls=None)), "somebody")


async def leaked() -> NoReturn:
    """What comes from a future that was cancelled elsewhere."""
    future: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()
    future.cancel()
    await future
    raise AssertionError


async def test_the_clean_up_goes_on() -> None:
    """Or sessions would never end."""
    calls = 0
    again = asyncio.Event()

    async def work() -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            await leaked()
        again.set()

    cleaning = asyncio.create_task(_every(0.0, work))
    await asyncio.wait_for(again.wait(), 60)
    cleaning.cancel()


@pytest.mark.parametrize("renders_before", [0, 1])
async def test_a_page_that_ends_by_itself_ends_for_its_viewers(
    account: ConsoleAccount, renders_before: int
) -> None:
    """They connect again; the page would stay as it is for ever."""
    renders = 0

    async def make() -> Fragments:
        nonlocal renders
        renders += 1
        return {"row": "text"} if renders <= renders_before else await leaked()

    feed = Feed(account, (), make)

    async def view() -> None:
        async with feed.viewing("") as updates:
            assert await updates.get() is not None
            feed._changed.set()
            assert await updates.get() is None

    if renders_before:
        await asyncio.wait_for(view(), 60)
    else:
        with pytest.raises(TaskEnded):
            await asyncio.wait_for(view(), 60)


async def test_a_log_that_ends_by_itself_ends_for_its_viewers(
    account: ConsoleAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    tail = LogTail(account, "default", "app=a", "a")
    monkeypatch.setattr(tail, "_pods", leaked)

    async def view() -> None:
        async with tail.viewing() as lines:
            assert await lines.get() is not None
            assert await lines.get() is None

    await asyncio.wait_for(view(), 60)
