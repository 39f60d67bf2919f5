"""One HTTP/1.1 connection: one request at a time; its answer comes whole or as a stream.

The parser is httptools' (that of Node.js). aiohttp's client was here before: of the 0.5 ms of CPU
that a patch took, 0.3 were its own, and on a small machine an operator takes them from the API
server. It also repeats some writes by itself, and does not say when it sends a request.
"""

import asyncio
from typing import Self, cast

import httptools
import msgspec

ENOUGH_HELD = 1 << 20
"""Bytes of a stream that may wait for their reader before reading from the server pauses."""
LONGEST_HEAD = 1 << 16


class Head(msgspec.Struct):
    """The status and headers of an answer; header names are in lower case."""

    status: int = 0
    headers: dict[str, str] = {}


class Wire(asyncio.Protocol):
    """A connection; the sender of a request reads the whole answer, or aborts the connection."""

    transport: asyncio.Transport
    era = 0
    """The era of its pool in which it was opened; it is not reused in a later one."""

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
        self._tunnels = False

    @property
    def reusable(self) -> bool:
        """Whether another request can be sent."""
        unread = not self._idle or self._parts
        return not unread and self._why_lost is None and not self.transport.is_closing()

    def lose(self, why: Exception) -> None:
        """Close the connection at once; whoever waits for its answer gets this error."""
        if self._why_lost is None:
            self._why_lost = why
            self.abort()
            self._wake()

    def abort(self) -> None:
        """Close the connection at once: a TLS shutdown would wait for a peer that may be silent."""
        self.transport.abort()

    async def whole(self, request: bytes) -> tuple[Head, bytes]:
        """Send a request; return the whole answer."""
        self._send(request)
        while not self._idle:
            await self._news()
        return self._head, self._taken()

    async def begun(self, request: bytes) -> Head:
        """Send a request; return the answer's head as soon as it is there. Iterate for the body."""
        self._send(request, streams=True)
        while not self._has_head:
            await self._news()
        return self._head

    async def tunnelled(self, request: bytes) -> Head:
        """Send a CONNECT; return its answer's head. The connection is then like a new one."""
        self._tunnels = True
        try:
            head = await self.begun(request)
        finally:
            self._tunnels = False
        self._idle = True
        self._parser = httptools.HttpResponseParser(self)  # a CONNECT's answer has no body
        return head

    def __aiter__(self) -> Self:
        """The body of a streamed answer, in parts as they arrive."""
        return self

    async def __anext__(self) -> bytes:
        while not self._parts:
            if self._idle:
                raise StopAsyncIteration
            await self._news()
        if self._held > ENOUGH_HELD:
            self.transport.resume_reading()
        return self._taken()

    # --- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport once the connection is up."""
        self.transport = cast("asyncio.Transport", transport)

    def eof_received(self) -> None:
        """End an answer that does not say its length (HTTP/1.0)."""
        if self._ends_with_connection:
            self._complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request that waits for an answer."""
        if self._ends_with_connection and self._head.status >= 400 and self._why_lost is None:
            self._complete()  # cut off or not: its status and Retry-After are here
        self.lose(exc or ConnectionResetError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        """Parse what the server sends."""
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

    # --- called by the parser

    def on_message_begin(self) -> None:
        """Refuse a second answer that follows the first without a request."""
        if self._idle:
            raise ConnectionResetError("the server sent what nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header."""
        self._head.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Store the status; wake the reader of a stream."""
        self._head.status = self._parser.get_status_code()
        if self._head.status >= 200:
            self._has_head = True
            if self._streams:
                self._wake()

    def on_body(self, body: bytes) -> None:
        """Store a part of the body; pause the server when its reader is behind."""
        self._parts.append(body)
        if self._streams:
            before, self._held = self._held, self._held + len(body)
            if before <= ENOUGH_HELD < self._held:
                self.transport.pause_reading()
            self._wake()

    def on_message_complete(self) -> None:
        """Complete the answer, or skip a "100 Continue", which comes before it."""
        if not self._has_head:
            self._head = Head()
            return
        # A proxy that says "close" to a CONNECT does not mean the tunnel.
        if not (self._tunnels or self._parser.should_keep_alive()):
            self.transport.close()
        self._complete()

    # --- ours

    @property
    def _ends_with_connection(self) -> bool:
        """Whether an answer without a length is under way."""
        headers = self._head.headers
        told = "content-length" in headers or "transfer-encoding" in headers
        return self._has_head and not (self._idle or told)

    def _complete(self) -> None:
        self._idle = True
        self._wake()

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
        """Wait until something arrives; raise if the connection is lost."""
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
