"""Forwards the fault proxy's requests to the real API server, and its answers back."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from quarterdeck.kube import Connection
from quarterdeck.kube.connection import verified_tls
from quarterdeck.kube.connection_pool import Sockets
from quarterdeck.testing.faults import Cut, Stall

# kubectl asks for a password when a kubeconfig has no credentials at all.
NOBODY = "no-credentials"
_NOT_PASSED_ON = {"host", "connection", "content-length", "transfer-encoding", "keep-alive"}


class Upstream:
    """The sessions with a server; create it in the event loop that uses it."""

    def __init__(self, connection: Connection) -> None:
        """Use the connection's certificate for requests without credentials."""
        self._server = connection.server
        self._sockets = Sockets()
        bare = verified_tls(ca_data=_authorities(connection.tls))
        self._as_user = aiohttp.ClientSession(connector=self._connector(connection.tls))
        self._as_token = aiohttp.ClientSession(connector=self._connector(bare))

    async def close(self) -> None:
        """End all sessions."""
        await self._as_user.close()
        await self._as_token.close()
        await self._sockets.close()

    async def pass_on(
        self, request: web.BaseRequest, limit: Cut | Stall | None, late: float
    ) -> web.StreamResponse:
        """Forward a request; the answer comes late, and is cut or stalled at a limit."""
        headers = _passed_on(request.headers)
        if headers.get("Authorization") == f"Bearer {NOBODY}":
            del headers["Authorization"]
        session = self._as_token if "Authorization" in headers else self._as_user
        try:
            async with session.request(
                request.method,
                URL(self._server + request.raw_path, encoded=True),
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
            # The server or the client has closed the connection.
            abort(request)
            return web.Response(status=502)

    def _connector(self, tls: ssl.SSLContext | None) -> aiohttp.TCPConnector:
        # Without keep-alive: an old connection would fail after a restart of the server.
        return aiohttp.TCPConnector(
            ssl=tls or False, limit=0, force_close=True, socket_factory=self._sockets.make
        )


async def _limited(
    chunks: AsyncIterator[bytes], limit: Cut | Stall | None, request: web.BaseRequest
) -> AsyncIterator[bytes]:
    """The chunks up to the limit, then the fault."""
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
            abort(request)
            raise ConnectionResetError
        case Stall():
            await asyncio.Event().wait()


def _passed_on(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    return CIMultiDict((n, v) for n, v in headers.items() if n.lower() not in _NOT_PASSED_ON)


def _authorities(tls: ssl.SSLContext | None) -> str | None:
    """The trusted authorities of a context, without its client certificate."""
    if tls is None:
        return None
    return "".join(ssl.DER_cert_to_PEM_cert(der) for der in tls.get_ca_certs(binary_form=True))


def abort(request: web.BaseRequest) -> None:
    """Break the connection of a request."""
    if request.transport is not None:
        request.transport.abort()
