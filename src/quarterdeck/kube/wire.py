"""One HTTP/1.1 connection: a request at a time, its answer whole or as it comes.

The parser is httptools' (that of Node.js). aiohttp's client was here before: of the 0.5 ms of CPU
that a patch took, 0.3 were its own, and on a small machine an operator takes them from the API
server. It also repeats some writes by itself, and does not tell when a request goes out.
"""

import asyncio
from typing import Self, cast

import httptools
import msgspec

ENOUGH_HELD = 1 << 20
"""Bytes of a stream that wait for their reader before the server has to wait."""
LONGEST_HEAD = 1 << 16


class Head(msgspec.Struct):
    """How an answer begins; the names of its headers are in small letters."""

    status: int = 0
    headers: dict[str, str] = {}


class Wire(asyncio.Protocol):
    """A connection; who has sent a request reads the whole answer, or aborts."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._why_lost: Exception | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._idle = True
        self._head = Head()
        self._has_head = False
        self._head_length = 0
        self._parts: list[bytes] = []
        self._held = 0
        self._streams = False

    @property
    def reusable(self) -> bool:
        """Whether another request can be sent."""
        unread = not self._idle or self._parts
        return not unread and self._why_lost is None and not self.transport.is_closing()

    def lose(self, why: Exception) -> None:
        """Close it at once; whoever waits for its answer is told why."""
        if self._why_lost is None:
            self._why_lost = why
            self.abort()
            self._wake()

    def abort(self) -> None:
        """Close it at once: TLS's farewell would wait for a peer that may be silent."""
        self.transport.abort()

    async def whole(self, request: bytes) -> tuple[Head, bytes]:
        """Send a request; the answer when all of it is there."""
        self._send(request)
        while not self._idle:
            await self._news()
        return self._head, self._taken()

    async def begun(self, request: bytes) -> Head:
        """Send a request; the answer's head, as soon as it is there. Iterate for the rest."""
        self._send(request, streams=True)
        while not self._has_head:
            await self._news()
        return self._head

    async def tunnelled(self, request: bytes) -> Head:
        """Send a CONNECT; its answer's head, after which the connection is as new."""
        head = await self.begun(request)
        self._idle = True
        self._parser = httptools.HttpResponseParser(self)  # a CONNECT's answer has no body
        return head

    def __aiter__(self) -> Self:
        """The body of an answer that has begun, in parts of whatever has come."""
        return self

    async def __anext__(self) -> bytes:
        while not self._parts:
            if self._idle:
                raise StopAsyncIteration
            await self._news()
        if self._held > ENOUGH_HELD:
            self.transport.resume_reading()
        return self._taken()

    # --- asyncio's

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be connected."""
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Be disconnected: whoever waits is told."""
        self.lose(exc or ConnectionResetError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        """Take what the server sends."""
        if self._idle:
            self.lose(ConnectionResetError("the server sent what nobody asked for"))
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.lose(ConnectionResetError(f"the server does not speak HTTP: {error}"))
            return
        if not self._has_head:
            self._head_length += len(data)
            if self._head_length > LONGEST_HEAD:
                self.lose(ConnectionResetError("the head of the answer does not end"))

    # --- the parser's

    def on_message_begin(self) -> None:
        """Refuse an answer that nobody waits for, right behind another one."""
        if self._idle:
            raise ConnectionResetError("the server sent what nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._head.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Know how the answer begins."""
        self._head.status = self._parser.get_status_code()
        if self._head.status >= 200:
            self._has_head = True
            if self._streams:
                self._wake()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._parts.append(body)
        if self._streams:
            before, self._held = self._held, self._held + len(body)
            if before <= ENOUGH_HELD < self._held:
                self.transport.pause_reading()
            self._wake()

    def on_message_complete(self) -> None:
        """Have all of the answer; or only a "continue", which comes before it."""
        if not self._has_head:
            self._head = Head()
            return
        self._idle = True
        if not self._parser.should_keep_alive():
            self.transport.close()
        self._wake()

    # --- ours

    def _send(self, request: bytes, *, streams: bool = False) -> None:
        self._idle = False
        self._head = Head()
        self._has_head = False
        self._head_length = 0
        self._streams = streams
        self.transport.write(request)

    def _taken(self) -> bytes:
        parts, self._parts, self._held = self._parts, [], 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _news(self) -> None:
        """Wait until something has come; raise when nothing will."""
        if self._why_lost is not None:
            raise self._why_lost
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
