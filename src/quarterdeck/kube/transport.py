"""One HTTP request, and when to send it again.

Sent again is only what is safe: reads after a lost connection, 429 or 503; writes after 429 or
when the connection was never made, because then the server has not seen them; anything once
after a 401 if there may be new credentials, on a new connection, because a connection keeps the
client certificate that it was made with. All of it within the request's time-out.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from quarterdeck.kube.auth import renewals
from quarterdeck.kube.backoff import Backoff, Retries
from quarterdeck.kube.connection import Connection
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
from quarterdeck.kube.metrics import RequestMetrics
from quarterdeck.kube.redact import loggable
from quarterdeck.kube.server_clock import ServerClock
from quarterdeck.kube.wire import Head, Wire
from quarterdeck.kube.wires import Wires
from quarterdeck.log import enabled, get_logger

log = get_logger("kube.client")

ATTEMPTS = 5
LONGEST_WAIT = 10.0
"""Seconds of Retry-After that are waited for here; a longer wait is the caller's to plan."""

_JSON = "application/json"

Query = Mapping[str, str]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What to send."""

    method: str
    path: str
    query: Query = {}
    body: bytes = b""
    content_type: str = "application/json"
    accept: str = ""
    """In which form the answer is wanted; empty for plain JSON."""
    any_form: bool = False
    """Whether an answer that is not JSON is one too: `/readyz` answers with a word."""

    @property
    def write(self) -> bool:
        """Whether it changes something."""
        return self.method != "GET"

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{_encoded(tuple(self.query.items()))}" if self.query else self.path


@lru_cache(maxsize=1000)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    """Most requests have one of a few queries: who writes, and how."""
    return urlencode(query)


class _Exchange:
    """How far a request has come."""

    def __init__(self) -> None:
        self.sent = False
        self.code = "<error>"


class Transport:
    """Requests to one server, over connections that are kept."""

    def __init__(self, connection: Connection, *, metrics: RequestMetrics | None = None) -> None:
        self.connection = connection
        self.before_write: Callable[[], None] | None = None
        self.clock = ServerClock()
        self._metrics = metrics
        self._wires = Wires(connection)
        self._host = connection.host
        self._path = urlsplit(connection.server).path.rstrip("/")
        self._same_for_all = _header_lines(connection)

    async def close(self) -> None:
        """Close all connections."""
        await self._wires.close()

    async def send(self, request: Request, timeout: float) -> bytes:
        """The body of the answer; an exception of `quarterdeck.kube.errors` otherwise."""
        deadline = time.monotonic() + timeout
        retries = Retries(Backoff(base=0.1, limit=5.0, jitter=0.5))
        renewed = False
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._attempt(request, deadline - time.monotonic())
            except KubeError as error:
                again = _retry_delay(request, error, retries)
                if isinstance(error, Unauthorized) and not renewed:
                    renewed = True
                    again = retries.next() if self.connection.credentials.rejected() else None
                if again is None or attempt == ATTEMPTS:
                    raise
                if again > LONGEST_WAIT or time.monotonic() + again >= deadline:
                    raise
                log.v(4).info("request is tried again", error=str(error), seconds=round(again, 2))
                await asyncio.sleep(again)
        raise AssertionError  # the last attempt returned or raised

    async def _attempt(self, request: Request, timeout: float) -> bytes:
        started = time.monotonic()
        with self._explained(request, timeout) as exchange:
            async with asyncio.timeout(timeout):
                text = self._text(request, await self._authorization())
                wire = await self._wires.take()
                try:
                    self._allow(request, exchange)
                    head, body = await wire.whole(text)
                finally:
                    self._wires.give_back(wire)
            self._heard(head, exchange)
        if enabled(6):
            _log_exchange(request, head.status, body, time.monotonic() - started)
        _expect(request, head, body)
        return body

    @contextlib.asynccontextmanager
    async def stream(self, request: Request, timeout: float) -> AsyncIterator[Wire]:
        """An answer to be read as it comes; the whole of it is bounded by the time-out."""
        started = time.monotonic()
        with self._explained(request, timeout) as exchange:
            text = self._text(request, await self._authorization())
            wire = await self._wires.take()
            # Not asyncio.timeout: who reads may be busy elsewhere when the time is over.
            end = asyncio.get_running_loop().call_later(timeout, wire.lose, TimeoutError())
            try:
                self._allow(request, exchange)
                head = await wire.begun(text)
                self._heard(head, exchange)
                if head.status != 200:
                    body = b"".join([part async for part in wire])
                    if head.status == 401:
                        self.connection.credentials.rejected()
                    _expect(request, head, body)
                    raise UnexpectedAnswer(
                        f"{request.method} {request.path}: answer is {head.status}, not a stream"
                    )
                _expect(request, head)
                log.v(6).info("watch opened", path=request.target, status=head.status)
                yield wire
            finally:
                end.cancel()
                self._wires.give_back(wire)
        log.v(6).info(
            "watch ended", path=request.path, seconds=round(time.monotonic() - started, 1)
        )

    @contextlib.contextmanager
    def _explained(self, request: Request, timeout: float) -> Iterator[_Exchange]:
        """All faults of the way as our exceptions, and each request counted."""
        exchange = _Exchange()
        try:
            yield exchange
        except TimeoutError as error:
            why = f"no answer in {timeout:.0f} s"
            raise RequestTimeout(request.method, request.path, why, sent=exchange.sent) from error
        except OSError as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise ConnectionFailed(request.method, request.path, why, sent=exchange.sent) from error
        finally:
            if self._metrics is not None:
                self._metrics.count(exchange.code, request.method, self._host)

    def _allow(self, request: Request, exchange: _Exchange) -> None:
        """Called right before the request goes out: a write may be stopped here."""
        if request.write and self.before_write is not None:
            self.before_write()
        exchange.sent = True

    def _heard(self, head: Head, exchange: _Exchange) -> None:
        exchange.code = str(head.status)
        if head.status == 401:
            self._wires.retire()
        self.clock.hear(head.headers.get("date"))

    async def _authorization(self) -> str | None:
        credentials = self.connection.credentials
        value = await credentials.authorization()
        self._wires.use_certificate(renewals(credentials))
        return value

    def _text(self, request: Request, authorization: str | None) -> bytes:
        """The request as it is sent."""
        lines = [
            f"{request.method} {self._path}{request.target} HTTP/1.1",
            *self._same_for_all,
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


def _retry_delay(request: Request, error: KubeError, retries: Retries) -> float | None:
    """Seconds until the request may be sent again, None if it may not."""
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


def _expect(request: Request, head: Head, body: bytes = b"") -> None:
    """Raise unless the answer is a success, in the form that was asked for."""
    if not 200 <= head.status < 300:
        raise_for(request.method, request.path, head.status, body, head.headers)
    form = head.headers.get("content-type", _JSON)
    if not (form.startswith(_JSON) or request.any_form):
        raise UnexpectedAnswer(f"{request.method} {request.path}: answer is {form}, not JSON")


def _log_exchange(request: Request, status: int, body: bytes, took: float) -> None:
    fields: dict[str, Any] = {
        "method": request.method,
        "path": request.target,
        "status": status,
        "ms": round(took * 1000, 1),
    }
    if enabled(8):
        fields["sent"] = loggable(request.path, request.body)
        fields["received"] = loggable(request.path, body)
    log.v(6).info("request", **fields)
