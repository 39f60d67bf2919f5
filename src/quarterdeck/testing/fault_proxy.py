"""A proxy in front of a real API server that injects faults, and counts requests.

    with FaultProxy(kubeconfig) as proxy:
        proxy.inject(Answer(429, retry_after=1), verb="list", resource="pods", times=2)
        connection = proxy.connection()      # or the file proxy.write_kubeconfig(path)
        ...
        assert proxy.count(verb="patch") == 1

It listens on loopback in its own thread, with a temporary TLS authority. A request without
credentials is forwarded as the kubeconfig's user, one with a token as the token's user. Verbs are
those of an audit log: get, list, watch, create, update, patch, delete, deletecollection.
"""

import asyncio
import socket
import ssl
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from aiohttp import web

from quarterdeck.kube import Connection, load_kubeconfig
from quarterdeck.kube.auth import load_pem_pair
from quarterdeck.kube.connection import verified_tls
from quarterdeck.kube.connection_pool import Sockets
from quarterdeck.localcluster.certificates import LOCAL_HOSTS, CertificateSpec, issue, new_authority
from quarterdeck.localcluster.kubeconfig import with_token
from quarterdeck.testing.fault_upstream import NOBODY, Upstream, abort
from quarterdeck.testing.faults import (
    Answer,
    Cut,
    Delay,
    Fault,
    FaultRule,
    Hold,
    Late,
    Seen,
    Stall,
    StreamError,
    describe,
)
from quarterdeck.testing.loop_thread import LoopThread, cancel_others

__all__ = [
    "Answer",
    "Cut",
    "Delay",
    "Fault",
    "FaultProxy",
    "Hold",
    "Late",
    "Seen",
    "Stall",
    "StreamError",
    "describe",
]


class FaultProxy:
    """A running proxy; call its methods from the test's thread."""

    def __init__(self, kubeconfig: Path) -> None:
        """Forward to the server of a kubeconfig."""
        self._connection = load_kubeconfig(kubeconfig, env={})
        now = datetime.now(UTC)
        authority = new_authority("fault proxy", now)
        plan = CertificateSpec(
            name="proxy", common_name="fault-proxy", server=True, hosts=LOCAL_HOSTS
        )
        self._pair = issue(plan, authority, now)
        self._authority = authority.certificate
        self._lock = threading.Lock()
        self._rules: list[FaultRule] = []
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
        """The proxy's address."""
        return f"https://127.0.0.1:{self._port}"

    def connection(self) -> Connection:
        """A connection through the proxy, as the kubeconfig's user."""
        return Connection(
            server=self.url, tls=verified_tls(ca_data=self._authority.decode("ascii"))
        )

    def write_kubeconfig(self, path: Path, token: str = NOBODY) -> Path:
        """Write a kubeconfig through the proxy; `token` selects another user."""
        path.write_bytes(with_token(self.url, self._authority, token, user="proxied"))
        return path

    def inject(
        self,
        fault: Fault,
        *,
        verb: str | None = None,
        resource: str | None = None,
        times: int | None = 1,
        skip: int = 0,
    ) -> None:
        """Inject a fault into the next requests of a verb and resource; None is any, or always.

        The first `skip` of these requests pass.
        """
        with self._lock:
            self._rules.append(FaultRule(fault, verb, resource, times, skip))

    def clear(self) -> None:
        """Remove all faults; a stalled connection stays stalled."""
        with self._lock:
            self._rules.clear()

    def cut_now(self) -> int:
        """Break all connections with an open request, and return their number."""
        return self._thread.call(self._cut_all())

    @property
    def seen(self) -> list[Seen]:
        """All requests so far."""
        with self._lock:
            return list(self._seen)

    def count(self, *, verb: str | None = None, resource: str | None = None) -> int:
        """The number of requests of that verb and resource."""
        return sum(
            verb in (None, seen.verb) and resource in (None, seen.resource) for seen in self.seen
        )

    def writes(self) -> int:
        """The number of write requests."""
        return sum(seen.verb not in ("get", "list", "watch") for seen in self.seen)

    def forget(self) -> None:
        """Forget all requests so far."""
        with self._lock:
            self._seen.clear()

    # --- in the proxy's own thread

    async def _start(self) -> None:
        self._upstream = Upstream(self._connection)
        self._server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.1)
        await self._runner.setup()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        load_pem_pair(tls, self._pair.certificate.decode(), self._pair.key.decode())
        self._accepted = Sockets()
        site = web.SockSite(self._runner, _Listener(self._accepted), ssl_context=tls)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        # Idle connections too: an orderly TLS shutdown would wait for the test's own thread.
        for handler in self._server.connections:
            if handler.transport is not None:
                handler.transport.abort()
        await self._runner.cleanup()
        # Stalled requests end here.
        await cancel_others()
        await self._upstream.close()
        # The server does not know those whose TLS handshake has not ended.
        await self._accepted.close()

    async def _cut_all(self) -> int:
        cut = list(self._open)
        for request in cut:
            abort(request)
        return len(cut)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        seen = describe(request.method, request.rel_url, request.headers.get("User-Agent", ""))
        with self._lock:
            self._seen.append(seen)
            rules = [rule for rule in self._rules if rule.consume(seen)]
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
                case Hold(held, let_go):
                    await request.read()
                    held.set()
                    while not let_go.is_set():  # noqa: ASYNC110 - set by the test's thread
                        await asyncio.sleep(0.01)
                case Answer():
                    return _answer(fault)
                case StreamError(status, reason):
                    event = {"type": "ERROR", "object": _status(status, reason)}
                    return web.Response(
                        body=msgspec.json.encode(event) + b"\n", content_type="application/json"
                    )
                case Cut() | Stall():
                    limit = fault
        return await self._upstream.pass_on(request, limit, late)


class _Listener(socket.socket):
    """Listens on a free port of loopback, and remembers the connections that it accepts."""

    def __init__(self, accepted: Sockets) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self._accepted = accepted
        self.bind(("127.0.0.1", 0))

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        """Accept a connection, and remember it."""
        connection, address = super().accept()
        self._accepted.add(connection)
        return connection, address


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
