"""Limits the connections to the console: how many there are, and how long one may take.

The HTTP server reads what comes, and waits for the rest for ever. A client that sends a byte now
and then would hold its connection, so each request has to be there within a while. So would one
that reads no answers.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web import RequestPayloadError

from quarterdeck.log import get_logger

log = get_logger("console.connections")

MAX_CONNECTIONS = 900
"""The most at a time; a process has about a thousand files by default."""
FIRST_BYTE_TIMEOUT = 75.0
"""Seconds after which a new connection without a request is closed."""
HEAD_TIMEOUT = 15.0
"""Seconds from the first byte of a request to the end of its head."""
READ_TIMEOUT = 30.0
"""Seconds for which a client may not read what it is sent."""


class _OurFaults(logging.Filter):
    """Passes the faults of the console, but not those of requests that cannot be read.

    Anybody can send such requests. Their lines would fill the log, and can have a token.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        fault = record.exc_info[1] if record.exc_info else None
        if isinstance(fault, (HttpProcessingError, RequestPayloadError, ConnectionError)):
            log.v(4).info("a request cannot be read", fault=type(fault).__name__)
            return False
        return True


def server_log() -> logging.Logger:
    """The log of the HTTP server."""
    made = logging.getLogger("quarterdeck.console.http")
    made.filters = [_OurFaults()]
    return made


class Connections:
    """Makes the protocols of the console's connections, each around one of the HTTP server's."""

    def __init__(self, make: Callable[[], asyncio.BaseProtocol]) -> None:
        self._make = make
        self._open: dict[asyncio.Transport, _Connection] = {}
        self._ended = False

    def __call__(self) -> asyncio.Protocol:
        """A protocol for a new connection."""
        return _Connection(self, cast("asyncio.Protocol", self._make()))

    def __len__(self) -> int:
        """How many connections there are."""
        return len(self._open)

    async def end(self) -> None:
        """End all connections, also those whose clients do not read."""
        self._ended = True
        while self._open:
            for transport in list(self._open):
                transport.abort()
            await asyncio.sleep(0)

    def began(self, transport: asyncio.Transport | None) -> None:
        """The head of a request has come: from now on the pages decide how long it takes."""
        if transport is not None and (found := self._open.get(transport)) is not None:
            found.began()

    def ended(self, transport: asyncio.Transport | None) -> None:
        """The request is answered."""
        if transport is not None and (found := self._open.get(transport)) is not None:
            found.ended()

    def add(self, transport: asyncio.Transport, connection: "_Connection") -> bool:
        """Count a new connection; False if there are too many, or the console ends."""
        if self._ended:
            return False
        if len(self._open) >= MAX_CONNECTIONS:
            # Not for everybody to read: whoever floods the console would flood its log.
            log.v(4).info("too many connections, one is refused", connections=len(self._open))
            return False
        self._open[transport] = connection
        return True

    def remove(self, transport: asyncio.Transport | None) -> None:
        """A connection has ended."""
        if transport is not None:
            self._open.pop(transport, None)


class _Connection(asyncio.Protocol):
    """Passes everything on, and closes the connection if a request does not come."""

    def __init__(self, connections: Connections, inner: asyncio.Protocol) -> None:
        self._connections = connections
        self._inner = inner
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._not_read: asyncio.TimerHandle | None = None
        self._answering = False
        self._in_head = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection, or refuse it."""
        self._transport = cast("asyncio.Transport", transport)
        if not self._connections.add(self._transport, self):
            self._transport.abort()
        self._inner.connection_made(transport)
        self._wait(FIRST_BYTE_TIMEOUT)

    def data_received(self, data: bytes) -> None:
        """Start the time of a request at its first byte."""
        if not self._answering and not self._in_head:
            self._in_head = True
            self._wait(HEAD_TIMEOUT)
        self._inner.data_received(data)

    def began(self) -> None:
        """A whole head has come."""
        self._answering, self._in_head = True, False
        self._stop_waiting()

    def ended(self) -> None:
        """The answer is sent; the HTTP server closes a connection without further requests."""
        self._answering = False

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count one less."""
        self._stop_waiting()
        self._is_read()
        self._connections.remove(self._transport)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Give the client a while to read what it was sent."""
        self._is_read()
        if self._transport is not None:
            loop = asyncio.get_running_loop()
            self._not_read = loop.call_later(READ_TIMEOUT, self._transport.abort)
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It has read."""
        self._is_read()
        self._inner.resume_writing()

    def _is_read(self) -> None:
        if self._not_read is not None:
            self._not_read.cancel()
            self._not_read = None

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._too_late)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_late(self) -> None:
        if self._transport is not None and not self._answering:
            self._transport.abort()
