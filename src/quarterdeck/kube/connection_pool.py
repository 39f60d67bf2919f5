"""Opens connections to one server, and reuses them.

No socket is left open when the client is closed.
"""

import asyncio
import base64
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit
from weakref import WeakSet

from aiohappyeyeballs import start_connection

from quarterdeck.kube.connection import (
    Connection,
    certificates_in,
    verified_tls,
)
from quarterdeck.kube.http_connection import HttpConnection
from quarterdeck.log import get_logger
from quarterdeck.proxies import unusable_proxy

log = get_logger("kube.client")

IDLE_TIMEOUT = 60.0
"""Seconds without a request after which a connection is closed: less than the server's 90 s, so
that the client closes it."""
CONNECT_TIMEOUT = 30.0
NEXT_ADDRESS_DELAY = 0.25
"""Seconds until the next address of a host is tried too (RFC 8305)."""
KEEP_ALIVE = (
    ("TCP_KEEPIDLE", 15),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 30_000),
)
"""The kernel detects within 30 s that the other machine is gone, with or without unsent data."""
CLOSING_ROUNDS = 10
"""The most turns of the event loop to wait; a socket that was shut down is closed in the third."""


class ConnectionPool:
    """The connections of one client; their number is not limited."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sockets = Sockets()
        self._kept: list[tuple[float, HttpConnection]] = []
        self._busy: set[HttpConnection] = set()
        self._authority = FileChanges(connection.authority)
        self._era = 0
        self._renewals = 0

    async def acquire(self) -> HttpConnection:
        """A connection for one request: the one used last, which is the most likely to be open."""
        self._drop_old()
        http = None
        while self._kept and http is None:
            _, last = self._kept.pop()
            http = last if last.reusable else None
        if http is None:
            era = self._era  # read before: it may not use a certificate that is loaded meanwhile
            http = await self._connect()
            http.era = era
        self._busy.add(http)
        return http

    def release(self, http: HttpConnection) -> None:
        """Take a connection back; close it if its answer was not read to the end."""
        self._busy.discard(http)
        if http.reusable and http.era == self._era:
            self._kept.append((time.monotonic(), http))
        else:
            http.abort()

    def use_certificate(self, renewals: int) -> None:
        """Reuse no present connection if the client certificate has changed."""
        if renewals != self._renewals:
            self._renewals = renewals
            self.retire()

    def retire(self) -> None:
        """Reuse no present connection; requests under way continue."""
        self._era += 1
        for _, http in self._kept:
            http.abort()
        self._kept.clear()

    async def close(self) -> None:
        """Close all connections, also those in use."""
        for http in [*self._busy, *(http for _, http in self._kept)]:
            http.abort()
        self._kept.clear()
        await self._sockets.close()

    def _drop_old(self) -> None:
        oldest = time.monotonic() - IDLE_TIMEOUT
        while self._kept and self._kept[0][0] < oldest:
            self._kept.pop(0)[1].abort()

    def _read_authority(self) -> None:
        """Trust new authorities in the file; an unreadable file changes nothing."""
        tls, file = self._connection.tls, self._connection.authority
        if tls is None or file is None or not self._authority.take():
            return
        try:
            tls.load_verify_locations(
                cadata=certificates_in(file.read_bytes().decode(errors="replace"))
            )
        except (OSError, ValueError) as error:
            log.warning("authorities unreadable, using the last", file=str(file), error=str(error))

    async def _connect(self) -> HttpConnection:
        self._read_authority()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return await connect(self._connection, self._sockets)
        except OSError as error:
            late = f"no connection in {CONNECT_TIMEOUT:.0f} s"
            why = late if isinstance(error, TimeoutError) else _reason(error)
            raise ConnectionError(f"cannot connect to {self._connection.host}: {why}") from error


class Sockets:
    """Makes sockets, and closes those that are still open."""

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: Any) -> socket.socket:
        """A socket that detects within 30 s that the other machine is gone."""
        family, kind, protocol, _, _ = address
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEP_ALIVE:
            if hasattr(socket, name):  # Linux has all of them
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self.add(sock)
        return sock

    def add(self, sock: socket.socket) -> None:
        """Close this one too."""
        self._made.add(sock)

    async def close(self) -> None:
        """Shut down all sockets that are still open, and wait until they are closed.

        A connection may wait up to 30 s for the TLS shutdown of its peer, and the event loop may be
        closed before that.
        """
        for _ in range(CLOSING_ROUNDS):
            still_open = [one for one in self._made if one.fileno() != -1]
            if not still_open:
                return
            for one in still_open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(0)


class FileChanges:
    """Detects that a file was changed or replaced."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._seen = self._stat()

    def _stat(self) -> tuple[int, int, int] | None:
        try:
            stat = self._file.stat() if self._file else None
        except OSError:
            return None
        return (stat.st_ino, stat.st_mtime_ns, stat.st_size) if stat else None

    def take(self) -> bool:
        """Whether the file has changed since the last call; a missing file has not."""
        seen = self._stat()
        if seen is None or seen == self._seen:
            return False
        self._seen = seen
        return True


async def connect(connection: Connection, sockets: Sockets) -> HttpConnection:
    """Open a connection to the server, through the proxy if there is one, with verified TLS."""
    server = urlsplit(connection.server)
    host = server.hostname or ""
    tls_name = connection.tls_server_name or host
    tls = None if server.scheme == "http" else connection.tls or verified_tls()
    loop = asyncio.get_running_loop()
    if connection.proxy is None:
        sock = await _connected(host, _port(server), sockets)
        _, http = await loop.create_connection(
            HttpConnection, sock=sock, ssl=tls, server_hostname=tls_name if tls else None
        )
        return http
    target = f"{_bracketed(host)}:{_port(server)}"
    tunnel = await _tunnel(urlsplit(connection.proxy), target, sockets)
    if tls is None:
        return tunnel
    http = HttpConnection()
    try:
        transport = await loop.start_tls(tunnel.transport, http, tls, server_hostname=tls_name)
    except BaseException:
        tunnel.abort()
        raise
    if transport is None:
        raise ConnectionResetError("the proxy closed the connection")
    http.connection_made(transport)
    return http


async def _tunnel(proxy: SplitResult, target: str, sockets: Sockets) -> HttpConnection:
    """Open a connection through a proxy to the target."""
    host = proxy.hostname or ""
    if why := unusable_proxy(proxy.geturl()):
        raise ConnectionRefusedError(f"the proxy {why}")
    sock = await _connected(host, _port(proxy), sockets)
    secure = proxy.scheme == "https"
    _, http = await asyncio.get_running_loop().create_connection(
        HttpConnection,
        sock=sock,
        ssl=verified_tls() if secure else None,
        server_hostname=host if secure else None,
    )
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.username is not None:
        who = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(who.encode()).decode()}")
    try:
        answer = await http.open_tunnel("\r\n".join([*lines, "", ""]).encode())
        if not 200 <= answer.status < 300:
            raise ConnectionRefusedError(
                f"the proxy {host}:{_port(proxy)} answered {answer.status} to CONNECT"
            )
    except BaseException:
        http.abort()
        raise
    return http


async def _connected(host: str, port: int, sockets: Sockets) -> socket.socket:
    """A socket to the first address of a host that accepts the connection."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    sock = await start_connection(
        addresses,
        happy_eyeballs_delay=NEXT_ADDRESS_DELAY,
        interleave=1,
        socket_factory=sockets.make,
    )
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _reason(error: OSError) -> str:
    """The reason of the error, without its number and call."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__


def _port(url: SplitResult) -> int:
    return url.port or (80 if url.scheme == "http" else 443)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
