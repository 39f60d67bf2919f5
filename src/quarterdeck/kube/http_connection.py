"""One HTTP/1.1 connection: one request at a time, its answer whole or as a stream.

The parser is that of httptools (and Node.js). aiohttp's client needs 0.5 ms of CPU for a patch,
this 0.2 ms; on a small machine the difference is taken from the API server. aiohttp also repeats
some writes by itself, and does not show when it sends a request.
"""

import asyncio
from typing import Self, cast

import httptools
import msgspec

READ_BUFFER_BYTES = 1 << 20
"""The most unread bytes of a stream before reading from the server pauses."""
MAX_HEAD_BYTES = 1 << 16
MAX_REFUSAL_BYTES = 1 << 20
"""The most bytes of the body of an answer that is not a success; the rest is not read."""
MAX_ANSWER_BYTES = 1 << 30
"""The most bytes of a whole answer; the largest are lists of all objects in one page."""


class Head(msgspec.Struct):
    """The status and headers of an answer; header names are in lower case."""

    status: int = 0
    headers: dict[str, str] = {}


class HttpConnection(asyncio.Protocol):
    """A connection to a server; its user reads each answer to the end, or aborts the connection."""

    transport: asyncio.Transport
    era = 0
    """The era of the pool in which it was opened; the pool does not reuse it in a later era."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._idle = True
        self._head = Head()
        self._has_head = False
        self._head_length = 0
        self._parts: list[bytes] = []
        self._held = 0
        self._body_length = 0
        self._streams = False
        self._tunnels = False

    @property
    def reusable(self) -> bool:
        """Whether another request can be sent."""
        unread = not self._idle or self._parts
        return not unread and self._error is None and not self.transport.is_closing()

    def fail(self, why: Exception) -> None:
        """Close the connection at once; a pending request gets this error."""
        if self._error is None:
            self._error = why
            self.abort()
            self._wake()

    def abort(self) -> None:
        """Close the connection at once, without a TLS shutdown, which would wait for the server."""
        self.transport.abort()

    async def send(self, request: bytes) -> tuple[Head, bytes]:
        """Send a request; return the whole answer."""
        self._send(request)
        while not self._idle:
            await self._wait()
        return self._head, self._take_body()

    async def open_stream(self, request: bytes) -> Head:
        """Send a request; return the head of the answer when it arrives. Iterate for the body."""
        self._send(request, streams=True)
        while not self._has_head:
            await self._wait()
        return self._head

    async def open_tunnel(self, request: bytes) -> Head:
        """Send a CONNECT; return the head of its answer. The connection is then like a new one."""
        self._tunnels = True
        try:
            head = await self.open_stream(request)
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
            await self._wait()
        if self._held > READ_BUFFER_BYTES:
            self.transport.resume_reading()
        return self._take_body()

    # --- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport once the connection is up."""
        self.transport = cast("asyncio.Transport", transport)

    def eof_received(self) -> None:
        """End an answer without a length (HTTP/1.0)."""
        if self._ends_with_connection:
            self._complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request that waits for an answer."""
        if self._ends_with_connection and self._head.status >= 400 and self._error is None:
            self._complete()  # even if it is cut off: its status and Retry-After have arrived
        self.fail(exc or ConnectionResetError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        """Parse what the server sends."""
        if self._idle:
            self.fail(ConnectionResetError("the server sent data without a request"))
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(ConnectionResetError(f"the server does not speak HTTP: {error}"))
            return
        if not self._has_head:
            self._head_length += len(data)
            if self._head_length > MAX_HEAD_BYTES:
                self.fail(ConnectionResetError("the head of the answer does not end"))

    # --- called by the parser

    def on_message_begin(self) -> None:
        """Refuse a second answer that follows the first without a request."""
        if self._idle:
            raise ConnectionResetError("the server sent data without a request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; skip those after a chunked body."""
        if self._has_head:
            self._head_length += len(name) + len(value)
            if self._head_length > MAX_HEAD_BYTES:
                self.fail(ConnectionResetError("the trailer of the answer does not end"))
            return
        self._head.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Store the status; wake the reader of a stream."""
        self._head.status = self._parser.get_status_code()
        if self._head.status >= 200:
            self._has_head = True
            if self._streams:
                self._wake()

    def on_body(self, body: bytes) -> None:
        """Store a part of the body; pause reading if too much is unread."""
        if self._idle or self._error is not None:
            return  # the rest of an answer that is too long
        self._parts.append(body)
        self._body_length += len(body)
        if self._head.status >= 300 and self._body_length > MAX_REFUSAL_BYTES:
            self.transport.abort()
            self._complete()  # its status and Retry-After have arrived
            return
        if self._body_length > MAX_ANSWER_BYTES and not self._streams:
            self._parts.clear()
            self.fail(ConnectionResetError(f"the answer has more than {MAX_ANSWER_BYTES} bytes"))
        if self._streams:
            before, self._held = self._held, self._held + len(body)
            if before <= READ_BUFFER_BYTES < self._held:
                self.transport.pause_reading()
            self._wake()

    def on_message_complete(self) -> None:
        """Complete the answer, or skip a "100 Continue" before it."""
        if not self._has_head:
            self._head = Head()
            return
        if self._idle:
            return
        # A proxy that answers "close" to a CONNECT does not close the tunnel.
        if not (self._tunnels or self._parser.should_keep_alive()):
            self.transport.close()
        self._complete()

    # --- helpers

    @property
    def _ends_with_connection(self) -> bool:
        """Whether an answer without a length is under way."""
        headers = self._head.headers
        has_length = "content-length" in headers or "transfer-encoding" in headers
        return self._has_head and not (self._idle or has_length)

    def _complete(self) -> None:
        self._idle = True
        self._wake()

    def _send(self, request: bytes, *, streams: bool = False) -> None:
        self._idle = False
        self._head = Head()
        self._has_head = False
        self._head_length = 0
        self._body_length = 0
        self._streams = streams
        self.transport.write(request)

    def _take_body(self) -> bytes:
        parts, self._parts, self._held = self._parts, [], 0
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _wait(self) -> None:
        """Wait until data arrives; raise if the connection is lost."""
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
