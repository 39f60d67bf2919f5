"""A proxy in front of a real API server that misbehaves on request, and counts.

    with FaultProxy(kubeconfig) as proxy:
        proxy.inject(Answer(429, retry_after=1), verb="list", resource="pods", times=2)
        connection = proxy.connection()      # or the file proxy.write_kubeconfig(path)
        ...
        assert proxy.count(verb="patch") == 1

It runs on loopback in a thread of its own and speaks TLS under a throw-away authority. Who sends
no credentials is passed on as the kubeconfig's user; who sends a token, as its owner. Verbs are
those of an audit log: get, list, watch, create, update, patch, delete, deletecollection.
"""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
import msgspec
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from quarterdeck.kube import Connection, load_kubeconfig
from quarterdeck.kube.auth import load_pem_pair
from quarterdeck.kube.connection import verified_tls
from quarterdeck.kube.sockets import Sockets
from quarterdeck.localcluster.certificates import LOCAL_HOSTS, Plan, issue, new_authority
from quarterdeck.localcluster.kubeconfig import with_token
from quarterdeck.testing.loop_thread import LoopThread, cancel_others

# kubectl asks for a password when a kubeconfig has no credentials at all.
_NOBODY = "no-credentials"
_NOT_PASSED_ON = {"host", "connection", "content-length", "transfer-encoding", "keep-alive"}


class Delay(msgspec.Struct, frozen=True):
    """Wait, then do as asked."""

    seconds: float


class Late(msgspec.Struct, frozen=True):
    """Do as asked, and answer after a while."""

    seconds: float


class Answer(msgspec.Struct, frozen=True):
    """Answer with a failure instead of asking the server."""

    status: int
    retry_after: int | None = None
    reason: str = ""


class StreamError(msgspec.Struct, frozen=True):
    """Open the watch, send an ERROR event, and end it."""

    status: int
    reason: str = ""


class Cut(msgspec.Struct, frozen=True):
    """Break the connection after so many bytes of the server's answer."""

    after: int = 0


class Stall(msgspec.Struct, frozen=True):
    """Fall silent after so many bytes of the server's answer, with the connection open."""

    after: int = 0


Fault = Delay | Late | Answer | StreamError | Cut | Stall


class Seen(msgspec.Struct, frozen=True):
    """A request that came by."""

    verb: str
    resource: str
    path: str
    user_agent: str


class _Rule(msgspec.Struct):
    fault: Fault
    verb: str | None
    resource: str | None
    times: int | None

    def takes(self, seen: Seen) -> bool:
        """Whether it is about this request; each time counts."""
        if self.times == 0:
            return False
        if self.verb not in (None, seen.verb) or self.resource not in (None, seen.resource):
            return False
        if self.times is not None:
            self.times -= 1
        return True


class FaultProxy:
    """A running proxy; all its methods may be called from the test's thread."""

    def __init__(self, kubeconfig: Path) -> None:
        """Stand in front of the server that a kubeconfig names."""
        self._upstream = load_kubeconfig(kubeconfig, env={})
        now = datetime.now(UTC)
        authority = new_authority("fault proxy", now)
        plan = Plan(name="proxy", common_name="fault-proxy", server=True, hosts=LOCAL_HOSTS)
        self._pair = issue(plan, authority, now)
        self._authority = authority.certificate
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []
        self._seen: list[Seen] = []
        self._open: list[web.BaseRequest] = []
        self._thread = LoopThread("fault-proxy")
        self._port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._thread.call(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._thread.call(self._stop())
        self._thread.stop()

    # --- for the test

    @property
    def url(self) -> str:
        """Where the proxy listens."""
        return f"https://127.0.0.1:{self._port}"

    def connection(self) -> Connection:
        """A connection through the proxy, as the kubeconfig's user."""
        return Connection(
            server=self.url, tls=verified_tls(ca_data=self._authority.decode("ascii"))
        )

    def write_kubeconfig(self, path: Path, token: str = _NOBODY) -> Path:
        """A kubeconfig through the proxy, for other programs; as a token's owner, if given."""
        path.write_bytes(with_token(self.url, self._authority, token, user="proxied"))
        return path

    def inject(
        self,
        fault: Fault,
        *,
        verb: str | None = None,
        resource: str | None = None,
        times: int | None = 1,
    ) -> None:
        """Do this to the next requests of that verb and resource; None means any, or always."""
        with self._lock:
            self._rules.append(_Rule(fault, verb, resource, times))

    def clear(self) -> None:
        """Forget all faults; what is stalled already stays so."""
        with self._lock:
            self._rules.clear()

    def cut_now(self) -> int:
        """Break all connections that are being answered; how many there were."""
        return self._thread.call(self._cut_all())

    @property
    def seen(self) -> list[Seen]:
        """All requests so far."""
        with self._lock:
            return list(self._seen)

    def count(self, *, verb: str | None = None, resource: str | None = None) -> int:
        """How many requests of that verb and resource came by."""
        return sum(
            verb in (None, seen.verb) and resource in (None, seen.resource) for seen in self.seen
        )

    def writes(self) -> int:
        """How many requests came by that change something."""
        return sum(seen.verb not in ("get", "list", "watch") for seen in self.seen)

    def forget(self) -> None:
        """Start counting anew."""
        with self._lock:
            self._seen.clear()

    # --- in the proxy's own thread

    async def _start(self) -> None:
        bare = verified_tls(ca_data=_authorities(self._upstream.tls))
        self._sockets = Sockets()
        self._as_user = aiohttp.ClientSession(connector=self._connector(self._upstream.tls))
        self._as_token = aiohttp.ClientSession(connector=self._connector(bare))
        self._server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.1)
        await self._runner.setup()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_pem_pair(tls, self._pair.certificate.decode(), self._pair.key.decode())
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        # Idle connections too: TLS's farewell would wait for the test's own thread.
        for handler in self._server.connections:
            if handler.transport is not None:
                handler.transport.abort()
        await self._runner.cleanup()
        # Whoever stalls does so until here.
        await cancel_others()
        await self._as_user.close()
        await self._as_token.close()
        await self._sockets.hang_up()

    def _connector(self, tls: ssl.SSLContext | None) -> aiohttp.TCPConnector:
        # Not kept alive: a server that was restarted must not be met on an old connection.
        return aiohttp.TCPConnector(
            ssl=tls or False, limit=0, force_close=True, socket_factory=self._sockets.make
        )

    async def _cut_all(self) -> int:
        cut = list(self._open)
        for request in cut:
            _abort(request)
        return len(cut)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        seen = describe(request.method, request.rel_url, request.headers.get("User-Agent", ""))
        with self._lock:
            self._seen.append(seen)
            rules = [rule for rule in self._rules if rule.takes(seen)]
        self._open.append(request)
        try:
            return await self._respond(request, [rule.fault for rule in rules])
        finally:
            self._open = [other for other in self._open if other is not request]

    async def _respond(self, request: web.BaseRequest, faults: list[Fault]) -> web.StreamResponse:
        limit: Cut | Stall | None = None
        late = 0.0
        for fault in faults:
            match fault:
                case Delay(seconds):
                    await asyncio.sleep(seconds)
                case Late(seconds):
                    late = seconds
                case Answer():
                    return _answer(fault)
                case StreamError(status, reason):
                    event = {"type": "ERROR", "object": _status(status, reason)}
                    return web.Response(
                        body=msgspec.json.encode(event) + b"\n", content_type="application/json"
                    )
                case Cut() | Stall():
                    limit = fault
        return await self._pass_on(request, limit, late)

    async def _pass_on(
        self, request: web.BaseRequest, limit: Cut | Stall | None, late: float
    ) -> web.StreamResponse:
        headers = _passed_on(request.headers)
        if headers.get("Authorization") == f"Bearer {_NOBODY}":
            del headers["Authorization"]
        session = self._as_token if "Authorization" in headers else self._as_user
        try:
            async with session.request(
                request.method,
                URL(self._upstream.server + request.raw_path, encoded=True),
                headers=headers,
                data=await request.read() or None,
                timeout=aiohttp.ClientTimeout(total=None),
                allow_redirects=False,
                auto_decompress=False,
            ) as upstream:
                await asyncio.sleep(late)
                answer = web.StreamResponse(status=upstream.status, reason=upstream.reason)
                answer.headers.update(_passed_on(upstream.headers))
                answer.enable_chunked_encoding()
                await answer.prepare(request)
                async for chunk in _limited(upstream.content.iter_any(), limit, request):
                    await answer.write(chunk)
                await answer.write_eof()
                return answer
        except (aiohttp.ClientError, OSError):
            # The server is away, or the client is: either way this exchange is over.
            _abort(request)
            return web.Response(status=502)


async def _limited(
    chunks: AsyncIterator[bytes], limit: Cut | Stall | None, request: web.BaseRequest
) -> AsyncIterator[bytes]:
    """The chunks up to the limit, and then what the fault says."""
    left = limit.after if limit else 0
    async for chunk in chunks:
        if limit is None:
            yield chunk
            continue
        yield chunk[:left]
        left -= len(chunk)
        if left <= 0:
            break
    match limit:
        case Cut():
            _abort(request)
            raise ConnectionResetError
        case Stall():
            await asyncio.Event().wait()


def describe(method: str, url: URL, user_agent: str = "") -> Seen:
    """What a request asks for, in the words of an audit log."""
    parts = [part for part in url.path.split("/") if part]
    # /api/v1/... or /apis/GROUP/VERSION/..., then maybe namespaces/NAME, then resource/name/sub
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:] if parts[:1] == ["apis"] else []
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        rest = rest[2:]
    resource = "/".join([*rest[:1], *rest[2:3]])
    named = len(rest) > 1
    match method:
        case "GET" if url.query.get("watch") in ("true", "1"):
            verb = "watch"
        case "GET":
            verb = "get" if named or not rest else "list"
        case "DELETE":
            verb = "delete" if named else "deletecollection"
        case _:
            verb = {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, method.lower())
    return Seen(verb, resource, url.path, user_agent)


def _answer(fault: Answer) -> web.Response:
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    return web.Response(
        status=fault.status,
        headers=headers,
        body=msgspec.json.encode(_status(fault.status, fault.reason)),
        content_type="application/json",
    )


def _status(code: int, reason: str) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the fault proxy says so",
        "reason": reason,
        "code": code,
    }


def _passed_on(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    return CIMultiDict((n, v) for n, v in headers.items() if n.lower() not in _NOT_PASSED_ON)


def _authorities(tls: ssl.SSLContext | None) -> str | None:
    """The authorities that a context trusts, without its client certificate."""
    if tls is None:
        return None
    return "".join(ssl.DER_cert_to_PEM_cert(der) for der in tls.get_ca_certs(binary_form=True))


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
