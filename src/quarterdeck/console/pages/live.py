"""Sends the changes of a page to its viewers, as server-sent events."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from aiohttp import web

from quarterdeck.console.account import ConsoleAccount
from quarterdeck.console.feed import Feed
from quarterdeck.console.pages.page import LivePage, answer_page
from quarterdeck.console.sessions import Session
from quarterdeck.console.state import SESSION, feeds_of

HEARTBEAT = 15.0
"""Seconds without a change after which a comment keeps the connection open."""
MAX_SEEN = 64
MAX_STREAMS = 50
"""The most streams of one session at a time."""


MakePage = Callable[[web.Request], Awaitable[LivePage]]
"""Makes the page that a request asks for; raises `HTTPNotFound` if there is none."""


def live_routes(path: str, make: MakePage) -> list[web.RouteDef]:
    """The routes of a page: the whole of it, and its changes."""

    async def show(request: web.Request) -> web.StreamResponse:
        return await answer_page(request, await make(request))

    async def live(request: web.Request) -> web.StreamResponse:
        return await follow(request, await make(request))

    return [web.get(path, show), web.get(f"/live{path}", live, allow_head=False)]


async def follow(request: web.Request, page: LivePage) -> web.StreamResponse:
    """Send the page's changes until the browser goes, or the session ends."""
    session = request[SESSION]
    seen = request.headers.get("Last-Event-ID") or request.query.get("seen", "")
    return await stream(request, _feed(session.account, page).viewing(seen[:MAX_SEEN]))


async def stream(
    request: web.Request,
    viewing: AbstractAsyncContextManager[asyncio.Queue[bytes | None]],
) -> web.StreamResponse:
    """Answer with what comes through a queue, until None comes or the session ends."""
    session = request[SESSION]
    if session.streams >= MAX_STREAMS:
        raise web.HTTPTooManyRequests(
            text="This session has too many live pages open. Close some.",
            headers={"Retry-After": "30"},
        )
    session.streams += 1
    try:
        async with viewing as queue:
            response = await _event_stream(request)
            await _send_all(response, queue, session)
            return response
    finally:
        session.streams -= 1


async def _event_stream(request: web.Request) -> web.StreamResponse:
    """The start of an answer that does not end by itself."""
    response = web.StreamResponse()
    response.content_type = "text/event-stream"
    response.charset = "utf-8"
    # A proxy before us must not collect the events.
    response.headers["X-Accel-Buffering"] = "no"
    await response.prepare(request)
    await response.write(b"retry: 2000\n\n")
    return response


async def _send_all(
    response: web.StreamResponse, queue: "asyncio.Queue[bytes | None]", session: Session
) -> None:
    """Send what comes, until the browser goes or is cut off."""
    ended = asyncio.create_task(session.ended.wait())
    waiting: asyncio.Task[bytes | None] | None = None
    try:
        while not ended.done():
            waiting = waiting or asyncio.create_task(queue.get())
            await asyncio.wait(
                {waiting, ended}, timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED
            )
            if waiting.done():
                data, waiting = waiting.result(), None
                if data is None:
                    return
                await response.write(data)
            elif not ended.done():
                await response.write(b": still here\n\n")
        await response.write(b"event: ended\ndata: {}\n\n")
    except ConnectionResetError:
        return
    finally:
        ended.cancel()
        if waiting is not None:
            waiting.cancel()


def _feed(account: ConsoleAccount, page: LivePage) -> Feed:
    """The feed of the page, which all its viewers share."""
    feeds = feeds_of(account)
    if page.path not in feeds:
        if len(feeds) > 500:
            feeds.clear()
        feeds[page.path] = Feed(account, page.selections, page.fragments)
    return feeds[page.path]
