"""Brings the last lines of a worker that is being replaced to rsyslog.

Before a reload, it follows the ring of the worker by a command, and a canary marks a place in the
ring and in what has arrived. After the stop it asks rsyslog how many lines came after that place,
sends the others, and all that the worker still writes. Its command connection keeps the worker
running until that has been read.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress

from quarterdeck.haproxy.access_log_lines import RING, RING_FACILITIES
from quarterdeck.haproxy.sidecar import Returned
from quarterdeck.log import get_logger
from quarterdeck.router.last_lines import LastLines
from quarterdeck.router.late_sender import LateSender

log = get_logger("router.last-lines")

STOP_TIMEOUT = 60.0
"""Seconds in which the worker is told to stop, after it is followed."""
SETTLED_AFTER = 0.25
"""Seconds in which rsyslog has read what is in its sockets, and we what is in the ring."""
_MOST_QUESTIONS = 20
_MOST_CANARIES = 5
_READ = 1 << 18

SendCanary = Callable[[str], Awaitable[Returned | None]]
"""Sends a canary of this name through the worker that runs now."""


class Follower:
    """The last lines of one worker."""

    def __init__(self, sender: LateSender, generation: int) -> None:
        self._sender = sender
        self._place = generation % len(RING_FACILITIES)
        self._lines = LastLines()
        self._base: Returned | None = None
        self._news = asyncio.Event()
        self._ended = False
        self._served = False
        self._reading: asyncio.Task[None] | None = None
        self.resolved = asyncio.Event()
        """Set once it is known which lines had arrived at the stop."""

    @property
    def held(self) -> int:
        """Lines that are known and may have to be sent."""
        return self._lines.held

    async def attach(self, admin_socket: str, send_canary: SendCanary | None) -> None:
        """Follow the worker at this socket, from a canary on if one comes back."""
        connected = asyncio.Event()
        self._reading = asyncio.create_task(self._read(admin_socket, connected), name="ring")
        await connected.wait()
        for _ in range(_MOST_CANARIES if send_canary and not self._ended else 0):
            name = secrets.token_hex(8)
            self._lines.begin_at(name)
            said = await send_canary(name) if send_canary else None
            if said is None or not said.of_ring:
                return
            await self._wait(lambda: self._lines.has_canary)
            if self._lines.has_canary:
                self._base = said
                return
            # The command came after the canary.

    def set_served(self) -> None:
        """Take note that the worker has no clients any more."""
        self._served = True
        self._news.set()

    async def run(self) -> None:
        """Send what has not arrived, until the worker has no clients any more."""
        try:
            if not await self._until_stopped():
                return
            lines = self._lines.undelivered(await self._delivered())
            self.resolved.set()
            await self._forward(lines)
            while self._lines.held or not await self._is_done():
                await self._forward(self._lines.undelivered(0))
            # A canary behind them: whoever ends rsyslog after us does not lose them.
            await self._sender.ask()
        finally:
            self.resolved.set()
            self.close()
            self._sender.close()

    def close(self) -> None:
        """Let the worker end."""
        if self._reading is not None:
            self._reading.cancel()

    async def _is_done(self) -> bool:
        """Wait for another line; whether none comes any more."""
        await self._wait(lambda: self._lines.held > 0 or self._served, None)
        if not self._lines.held:
            # What was written before the last client left is still on its way.
            await self._wait(lambda: self._lines.held > 0)
        return not self._lines.held

    async def _forward(self, lines: list[bytes]) -> None:
        if not await self._sender.send(lines):
            log.warning("rsyslog did not take the last lines of a worker", lines=len(lines))

    async def _until_stopped(self) -> bool:
        """Whether the worker was told to stop; if not, nothing has to be sent."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT):
                while not (self._lines.stopped or self._ended or self._lines.too_many):
                    self._news.clear()
                    await self._news.wait()
        return self._lines.stopped

    async def _delivered(self) -> int | None:
        """How many lines after the canary have arrived; None if that is not known."""
        before: Returned | None = None
        for _ in range(_MOST_QUESTIONS if self._base else 0):
            said = await self._sender.ask()
            if self._base is None or said is None or said.started != self._base.started:
                return None
            count = said.of_ring[self._place] - self._base.of_ring[self._place]
            if count < 0:
                return None  # it started again within the same second
            if before is not None and before.of_ring[self._place] == said.of_ring[self._place]:
                return count
            before = said
            await asyncio.sleep(SETTLED_AFTER)
        return None

    async def _wait(self, holds: Callable[[], bool], limit: float | None = SETTLED_AFTER) -> None:
        """Wait until this holds, or the worker has ended; only a moment, unless said otherwise."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while not (holds() or self._ended):
                    self._news.clear()
                    await self._news.wait()

    async def _read(self, admin_socket: str, connected: asyncio.Event) -> None:
        """Read the ring until the worker ends, or we are told to stop."""
        try:
            with suppress(OSError):
                reader, writer = await asyncio.open_unix_connection(admin_socket, limit=_READ)
                try:
                    writer.write(f"show events {RING} -w -n\n".encode())
                    connected.set()
                    while data := await reader.read(_READ):
                        self._lines.feed(data)
                        self._news.set()
                finally:
                    writer.close()
        finally:
            self._ended = True
            connected.set()
            self._news.set()
