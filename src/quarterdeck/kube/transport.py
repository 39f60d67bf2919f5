"""One HTTP request, and when to send it again.

Sent again is only what is safe: reads after a lost connection, 429 or 503; writes after 429 or
when the connection was never made, because then the server has not seen them; anything once
after a 401 if there are new credentials. All of it within the request's time-out.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from quarterdeck.kube.backoff import Backoff
from quarterdeck.kube.connection import Connection
from quarterdeck.kube.errors import (
    ConnectionFailed,
    KubeError,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    Unauthorized,
    raise_for,
)
from quarterdeck.kube.metrics import RequestMetrics
from quarterdeck.kube.redact import loggable
from quarterdeck.kube.server_clock import ServerClock
from quarterdeck.kube.sockets import Sockets
from quarterdeck.log import enabled, get_logger

log = get_logger("kube.client")

ATTEMPTS = 5
LONGEST_WAIT = 10.0
"""Seconds of Retry-After that are waited for here; a longer wait is the caller's to plan."""
STREAM_BUFFER = 1 << 20

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


class _Guard:
    """Asked in the moment a request goes onto its connection."""

    def __init__(self, request: Request, before_write: Callable[[], None] | None) -> None:
        self._request = request
        self._before_write = before_write
        self.sent = False

    def check(self) -> None:
        if self._request.write:
            if self.sent:
                # aiohttp would repeat a PUT or DELETE by itself when a kept connection dies.
                raise ConnectionFailed(
                    self._request.method, self._request.path, "connection lost", sent=True
                )
            if self._before_write is not None:
                self._before_write()
        self.sent = True


_guard: ContextVar[_Guard] = ContextVar("guard")


class _GuardedRequest(aiohttp.ClientRequest):
    """aiohttp's request, which asks the guard once it has its connection."""

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        # A proxy's CONNECT goes through here too, with the same guard not yet concerned.
        if self.method != "CONNECT":
            _guard.get().check()
        return await super().send(conn)


class Transport:
    """A keep-alive pool to one server."""

    def __init__(self, connection: Connection, *, metrics: RequestMetrics | None = None) -> None:
        self.connection = connection
        self.before_write: Callable[[], None] | None = None
        self.clock = ServerClock()
        self._metrics = metrics
        self._host = connection.host
        self._session: aiohttp.ClientSession | None = None
        self._sockets = Sockets()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None
            await self._sockets.hang_up()

    async def send(self, request: Request, timeout: float) -> bytes:
        """The body of the answer; an exception of `quarterdeck.kube.errors` otherwise."""
        deadline = time.monotonic() + timeout
        backoff = Backoff(0.1, 5.0)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._attempt(request, deadline - time.monotonic())
            except KubeError as error:
                again = self._retry_delay(request, error, backoff)
                if again is None or attempt == ATTEMPTS:
                    raise
                if again > LONGEST_WAIT or time.monotonic() + again >= deadline:
                    raise
                log.v(4).info("request is tried again", error=str(error), seconds=round(again, 2))
                await asyncio.sleep(again)
        raise AssertionError  # the last attempt returned or raised

    def _retry_delay(self, request: Request, error: KubeError, backoff: Backoff) -> float | None:
        """Seconds until the request may be sent again, None if it may not."""
        match error:
            case TooManyRequests():
                return error.retry_after or backoff.next()
            case Unauthorized():
                fresh = backoff.failures == 0 and self.connection.credentials.rejected()
                return backoff.next() if fresh else None
            case ServerError(code=503) if not request.write:
                return error.retry_after or backoff.next()
            case ConnectionFailed() if not (request.write and error.sent):
                return backoff.next()
            case _:
                return None

    async def _attempt(self, request: Request, timeout: float) -> bytes:
        started = time.monotonic()
        async with self._open(request, aiohttp.ClientTimeout(total=max(timeout, 0.001))) as answer:
            body = await answer.read()
        if enabled(6):
            _log_exchange(request, answer.status, body, time.monotonic() - started)
        raise_for(request.method, request.path, answer.status, body, answer.headers)
        return body

    @contextlib.asynccontextmanager
    async def stream(self, request: Request, timeout: float) -> AsyncIterator[aiohttp.StreamReader]:
        """An answer to be read as it comes; the whole of it is bounded by the time-out."""
        started = time.monotonic()
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=30.0)
        async with self._open(request, limits) as answer:
            if answer.status >= 400:
                body = await answer.read()
                if answer.status == 401:
                    self.connection.credentials.rejected()
                raise_for(request.method, request.path, answer.status, body, answer.headers)
            log.v(6).info("watch opened", path=request.target, status=answer.status)
            yield answer.content
        log.v(6).info(
            "watch ended", path=request.path, seconds=round(time.monotonic() - started, 1)
        )

    @contextlib.asynccontextmanager
    async def _open(
        self, request: Request, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer whose body is still to be read, all its faults as our exceptions."""
        guard = _Guard(request, self.before_write)
        _guard.set(guard)
        code = "<error>"
        try:
            headers = {"Content-Type": request.content_type} if request.body else {}
            if request.accept:
                headers["Accept"] = request.accept
            if authorization := await self.connection.credentials.authorization():
                headers["Authorization"] = authorization
            async with self._pool().request(
                request.method,
                URL(self.connection.server + request.target, encoded=True),
                data=request.body or None,
                headers=headers,
                timeout=limits,
                proxy=self.connection.proxy,
                server_hostname=self.connection.tls_server_name,
                allow_redirects=False,
                read_bufsize=STREAM_BUFFER,
            ) as answer:
                code = str(answer.status)
                self.clock.hear(answer.headers.get("Date"))
                # Taken now: an answer that is broken off lets go of its connection first.
                wire = answer.connection.transport if answer.connection else None
                try:
                    yield answer
                except BaseException:
                    _drop(wire)
                    raise
            if wire is not None and wire.is_closing():
                _drop(wire)
        except TimeoutError as error:
            why = f"no answer in {limits.total:.0f} s"
            raise RequestTimeout(request.method, request.path, why, sent=guard.sent) from error
        except (aiohttp.ClientError, OSError) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            raise ConnectionFailed(request.method, request.path, why, sent=guard.sent) from error
        finally:
            if self._metrics is not None:
                self._metrics.count(code, request.method, self._host)

    def _pool(self) -> aiohttp.ClientSession:
        """The session, made in the event loop that uses it."""
        if self._session is None:
            headers = CIMultiDict({"Accept": "application/json", "Accept-Encoding": "identity"})
            headers["User-Agent"] = self.connection.user_agent
            for name, values in self.connection.headers.items():
                for value in [values] if isinstance(values, str) else values:
                    headers.add(name, value)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    # How much is in flight is the callers' business: workers and watches.
                    limit=0,
                    ssl=self.connection.tls or True,
                    # Below the server's 90 s, so that we are the one who closes.
                    keepalive_timeout=60,
                    socket_factory=self._sockets.make,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=headers,
                request_class=_GuardedRequest,
                trust_env=False,
            )
        return self._session


def _drop(wire: asyncio.Transport | None) -> None:
    """Close a connection at once: TLS's farewell would wait for a peer that may be silent."""
    if wire is not None:
        wire.abort()


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
