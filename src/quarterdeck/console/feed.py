"""A page of one identity, live: rendered once at each change, sent to all its viewers.

A page consists of fragments, each an HTML element with an id. A viewer gets only the fragments that
changed: an update of one row costs one row.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import msgspec

from quarterdeck.console.account import ConsoleAccount, Selected, Unreadable
from quarterdeck.console.viewers import end_updates
from quarterdeck.controller.tasks import guarded
from quarterdeck.kube import KubeError
from quarterdeck.log import get_logger

log = get_logger("console.feed")

Fragments = Mapping[str, str]
"""The HTML of each fragment, by the id of its element."""
MakeFragments = Callable[[], Awaitable[Fragments]]

PAUSE = 0.03
"""Seconds for which changes are collected before they are rendered."""
MAX_QUEUED = 64
"""The updates that a slow viewer may be behind; beyond that it has to connect again."""
LOOK_PERIOD = 15.0
"""Seconds after which a page is rendered again without a change: a right may have been revoked."""


class FragmentChange(msgspec.Struct, frozen=True):
    """A fragment that changed; `html` is None if it is gone."""

    id: str
    html: str | None


def digest(fragments: Fragments) -> str:
    """A short hash of all fragments: two pages with the same one look the same."""
    found = hashlib.sha256()
    for name in sorted(fragments):
        found.update(f"{name}\0{fragments[name]}\0".encode())
    return found.hexdigest()[:20]


def updates(before: Fragments, after: Fragments) -> list[FragmentChange]:
    """What changes a page with the fragments before into one with those after. Pure."""
    changed = [
        FragmentChange(name, html) for name, html in after.items() if before.get(name) != html
    ]
    return changed + [FragmentChange(name, None) for name in before if name not in after]


def message(changes: list[FragmentChange], state: str, event: str = "update") -> bytes:
    """The changes as one server-sent event; its id is the state after them.

    With the event `whole` they are all fragments: what a viewer has besides is gone.
    """
    data = msgspec.json.encode(changes).decode()
    return f"event: {event}\nid: {state}\ndata: {data}\n\n".encode()


class Feed:
    """The fragments of one page, for all viewers of one account."""

    def __init__(
        self, account: ConsoleAccount, selections: tuple[Selected, ...], make: MakeFragments
    ) -> None:
        self._account = account
        self._selections = selections
        self._make = make
        self._changed = asyncio.Event()
        self._viewers: set[asyncio.Queue[bytes | None]] = set()
        self._fragments: Fragments = {}
        self._state = ""
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._fault: Exception | None = None

    @contextlib.asynccontextmanager
    async def viewing(self, seen: str) -> AsyncIterator["asyncio.Queue[bytes | None]"]:
        """The updates for one viewer, who has a page in the state `seen`; None ends them.

        Raises what keeps the page from being rendered.
        """
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_QUEUED)
        # A viewer from now on: another one that leaves does not end the task.
        self._viewers.add(queue)
        try:
            if self._task is None or self._task.done():
                self._fault, self._ready = None, asyncio.Event()
                self._task = asyncio.create_task(self._run(self._ready), name="console feed")
            await self._ready.wait()
            if self._fault is not None:
                raise self._fault
            while not queue.empty():
                queue.get_nowait()  # the whole page has it
            if seen != self._state:
                whole = message(updates({}, self._fragments), self._state, "whole")
                queue.put_nowait(whole)
            yield queue
        finally:
            self._viewers.discard(queue)
            if not self._viewers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _run(self, ready: asyncio.Event) -> None:
        """Render at each change, until nobody looks or it fails: then all viewers' updates end."""
        try:
            await guarded("page", self._render_until_left(ready))
        except (KubeError, Unreadable) as error:
            log.v(4).info("page not rendered", error=str(error))
            self._fault = error
        except Exception as error:
            log.exception("page not rendered")
            self._fault = error
        finally:
            ready.set()
            if ready is self._ready:
                for queue in self._viewers:
                    end_updates(queue)

    async def _render_until_left(self, ready: asyncio.Event) -> None:
        while True:
            # Entered again and again: a cache that was stopped is not followed any more.
            async with self._account.holding(self._selections, self._changed.set):
                await self._render_for_a_while(ready)

    async def _render_for_a_while(self, ready: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + LOOK_PERIOD
        while loop.time() < until:
            self._changed.clear()
            await self._render()
            ready.set()
            try:
                async with asyncio.timeout_at(until):
                    await self._changed.wait()
            except TimeoutError:
                return
            await asyncio.sleep(PAUSE)

    async def _render(self) -> None:
        after = await self._make()
        changes = updates(self._fragments, after)
        self._fragments = after
        if not changes:
            return
        self._state = digest(after)
        data = message(changes, self._state)
        for queue in self._viewers:
            try:
                queue.put_nowait(data)
            except asyncio.QueueFull:
                end_updates(queue)
