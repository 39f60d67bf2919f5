"""Sends HTTP requests, and retries them if that is safe.

A read is retried after a lost connection, 429 or 503. A write is retried after 429, or if the
connection was never opened, because the server has not seen it then. After a 401 any request is
retried once if there may be new credentials, on a new connection, because a connection keeps the
client certificate that it was opened with. All retries are within the request's time-out.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from quarterdeck.backoff import Backoff, Retries
from quarterdeck.kube.auth import renewals
from quarterdeck.kube.connection import Connection
from quarterdeck.kube.connection_pool import ConnectionPool
from quarterdeck.kube.errors import (
    ConnectionFailed,
    KubeError,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnexpectedAnswer,
    raise_for,
)
from quarterdeck.kube.http_connection import Head, HttpConnection
from quarterdeck.kube.metrics import RequestMetrics
from quarterdeck.kube.redact import MAX_IN_LOOP, loggable
from quarterdeck.kube.server_clock import ServerClock
from quarterdeck.log import enabled, get_logger

log = get_logger("kube.client")

MAX_ATTEMPTS = 5
MAX_RETRY_AFTER = 10.0
"""The longest Retry-After in seconds that is waited for here; for a longer one the error is
raised."""

_JSON = "application/json"

Query = Mapping[str, str]


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request."""

    method: str
    path: str
    query: Query = {}
    body: bytes = b""
    content_type: str = "application/json"
    accept: str = ""
    """The Accept header; empty for JSON."""
    any_form: bool = False
    """Whether the answer need not be JSON: `/readyz` answers with a word."""

    @property
    def write(self) -> bool:
        """Whether the request may change an object."""
        return self.method != "GET"

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{_encoded(tuple(self.query.items()))}" if self.query else self.path


@lru_cache(maxsize=1000)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    """Cached, because most requests have one of a few queries."""
    return urlencode(query)


class _Exchange:
    """Whether a request was sent, and the status code of its answer."""

    def __init__(self) -> None:
        self.sent = False
        self.code = "<error>"


class Transport:
    """Sends requests to one server, over connections that are reused."""

    def __init__(self, connection: Connection, *, metrics: RequestMetrics | None = None) -> None:
        self.connection = connection
        self.before_write: Callable[[], None] | None = None
        self.clock = ServerClock()
        self._metrics = metrics
        self._pool = ConnectionPool(connection)
        self._host = connection.host
        self._path = urlsplit(connection.server).path.rstrip("/")
        self._common_headers = _header_lines(connection)

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    async def send(self, request: HttpRequest, timeout: float) -> bytes:
        """The body of the answer; raises an exception of `quarterdeck.kube.errors`."""
        deadline = time.monotonic() + timeout
        retries = Retries(Backoff(base=0.1, limit=5.0, jitter=0.5))
        renewed = False
        failed: KubeError | None = None
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                return await self._attempt(request, deadline - time.monotonic())
            except KubeError as error:
                if failed and isinstance(error, RequestTimeout) and not error.sent:
                    raise failed from None  # it says why there is no time left
                failed = error
                again = _retry_delay(request, error, retries)
                if isinstance(error, Unauthorized) and not renewed:
                    renewed = True
                    again = retries.next() if self.connection.credentials.rejected() else None
                if again is None or attempt == MAX_ATTEMPTS:
                    raise
                if again > MAX_RETRY_AFTER or time.monotonic() + again >= deadline:
                    raise
                log.v(4).info("request is tried again", error=str(error), seconds=round(again, 2))
                await asyncio.sleep(again)
        raise AssertionError  # the last attempt returned or raised

    async def _attempt(self, request: HttpRequest, timeout: float) -> bytes:
        started = time.monotonic()
        with self._translated_errors(request, timeout) as exchange:
            async with asyncio.timeout(timeout):
                text = self._text(request, await self._authorization())
                http = await self._pool.acquire()
                try:
                    self._before_send(request, exchange)
                    head, body = await http.send(text)
                finally:
                    self._pool.release(http)
            self._note_answer(head, exchange)
        if enabled(6):
            await _log_exchange(request, head.status, body, time.monotonic() - started)
        _expect(request, head, body)
        return body

    @contextlib.asynccontextmanager
    async def stream(self, request: HttpRequest, timeout: float) -> AsyncIterator[HttpConnection]:
        """An answer to read as it arrives; the time-out limits the whole stream."""
        started = time.monotonic()
        with self._translated_errors(request, timeout) as exchange:
            text = self._text(request, await self._authorization())
            http = await self._pool.acquire()
            # Not asyncio.timeout: the reader may not be awaiting the stream when the time is over.
            end = asyncio.get_running_loop().call_later(timeout, http.fail, TimeoutError())
            try:
                self._before_send(request, exchange)
                head = await http.open_stream(text)
                self._note_answer(head, exchange)
                if head.status != 200:
                    body = b"".join([part async for part in http])
                    if head.status == 401:
                        self.connection.credentials.rejected()
                    _expect(request, head, body)
                    raise UnexpectedAnswer(
                        f"{request.method} {request.path}: answer is {head.status}, not a stream"
                    )
                _expect(request, head)
                log.v(6).info("watch opened", path=request.target, status=head.status)
                yield http
            finally:
                end.cancel()
                self._pool.release(http)
        log.v(6).info(
            "watch ended", path=request.path, seconds=round(time.monotonic() - started, 1)
        )

    @contextlib.contextmanager
    def _translated_errors(self, request: HttpRequest, timeout: float) -> Iterator[_Exchange]:
        """Translate network errors into our exceptions, and count the request."""
        exchange = _Exchange()
        try:
            yield exchange
        except TimeoutError as error:
            why = f"no answer in {round(timeout, 1):g} s"
            raise RequestTimeout(request.method, request.path, why, sent=exchange.sent) from error
        except OSError as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise ConnectionFailed(request.method, request.path, why, sent=exchange.sent) from error
        finally:
            if self._metrics is not None:
                self._metrics.count(exchange.code, request.method, self._host)

    def _before_send(self, request: HttpRequest, exchange: _Exchange) -> None:
        """Call `before_write` right before a write is sent; it may stop the write."""
        if request.write and self.before_write is not None:
            self.before_write()
        exchange.sent = True

    def _note_answer(self, head: Head, exchange: _Exchange) -> None:
        exchange.code = str(head.status)
        if head.status == 401:
            self._pool.retire()
        # Not the clock of a proxy that answers in the server's place, by a page.
        if head.headers.get("content-type", "").startswith("application/json"):
            self.clock.update(head.headers.get("date"))

    async def _authorization(self) -> str | None:
        credentials = self.connection.credentials
        value = await credentials.authorization()
        self._pool.use_certificate(renewals(credentials))
        return value

    def _text(self, request: HttpRequest, authorization: str | None) -> bytes:
        """The bytes of the request."""
        lines = [
            f"{request.method} {self._path}{request.target} HTTP/1.1",
            *self._common_headers,
            f"Accept: {request.accept or _JSON}",
        ]
        if request.write:
            lines.append(f"Content-Length: {len(request.body)}")
        if request.body:
            lines.append(f"Content-Type: {request.content_type}")
        if authorization:
            lines.append(f"Authorization: {authorization}")
        text = "\r\n".join([*lines, "", ""])
        if text.count("\n") != len(lines) + 1 or text.count("\r") != len(lines) + 1:
            raise ValueError(f"{request.method} {request.path}: a line break in a header")
        return text.encode() + request.body


def _retry_delay(request: HttpRequest, error: KubeError, retries: Retries) -> float | None:
    """Seconds until the retry; None if the request must not be retried."""
    match error:
        case TooManyRequests():
            return error.retry_after or retries.next()
        case ServerError(code=503) if not request.write:
            return error.retry_after or retries.next()
        case ConnectionFailed() if not (request.write and error.sent):
            return retries.next()
        case _:
            return None


def _header_lines(connection: Connection) -> list[str]:
    lines = [
        f"Host: {connection.host}",
        f"User-Agent: {connection.user_agent}",
        "Accept-Encoding: identity",
    ]
    for name, values in connection.headers.items():
        lines += [f"{name}: {value}" for value in ([values] if isinstance(values, str) else values)]
    return lines


def _expect(request: HttpRequest, head: Head, body: bytes = b"") -> None:
    """Raise unless the answer is a success with the requested content type."""
    if not 200 <= head.status < 300:
        raise_for(request.method, request.path, head.status, body, head.headers)
    form = head.headers.get("content-type", _JSON)
    if not (form.startswith(_JSON) or request.any_form):
        raise UnexpectedAnswer(f"{request.method} {request.path}: answer is {form}, not JSON")
    packed = head.headers.get("content-encoding", "identity")
    if packed != "identity":
        raise UnexpectedAnswer(
            f"{request.method} {request.path}: answer is packed as {packed}, not asked for"
        )


async def _log_exchange(request: HttpRequest, status: int, body: bytes, took: float) -> None:
    fields: dict[str, Any] = {
        "method": request.method,
        "path": request.target,
        "status": status,
        "ms": round(took * 1000, 1),
    }
    if enabled(8):
        fields["sent"] = await _loggable(request.path, request.body)
        fields["received"] = await _loggable(request.path, body)
    log.v(6).info("request", **fields)


async def _loggable(path: str, body: bytes) -> str:
    """The body without secrets; a large one is looked through in a thread.

    In the event loop it would delay everything else, such as the renewal of the Lease.
    """
    if len(body) <= MAX_IN_LOOP:
        return loggable(path, body)
    return await asyncio.to_thread(loggable, path, body)
