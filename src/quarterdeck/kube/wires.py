"""Connections to one server: made when there is none to spare, kept for the next request.

None of their sockets is left open when the client is closed.
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
    unusable_proxy,
    verified_tls,
)
from quarterdeck.kube.wire import Wire
from quarterdeck.log import get_logger

log = get_logger("kube.client")

KEPT = 60.0
"""Seconds without a request after which a connection is not used again: less than the server's
90 s, so that we are the one who closes."""
CONNECT_LIMIT = 30.0
NEXT_ADDRESS = 0.25
"""Seconds after which the next address of a host is tried too (RFC 8305)."""
KEEP_ALIVE = (
    ("TCP_KEEPIDLE", 15),
    ("TCP_KEEPINTVL", 5),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 30_000),
)
"""How the kernel finds out that the other machine is gone: 30 s, with or without data under way."""
CLOSING_ROUNDS = 10
"""Turns of the event loop; a socket that was shut down is closed in the third."""


class Wires:
    """The connections of one client; how many are in use is its callers' business."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._sockets = Sockets()
        self._kept: list[tuple[float, Wire]] = []
        self._busy: set[Wire] = set()
        self._authority = Changes(connection.authority)
        self._era = 0
        self._renewals = 0

    async def take(self) -> Wire:
        """A connection for one request: the one used last, which is the likeliest to be alive."""
        self._drop_old()
        wire = None
        while self._kept and wire is None:
            _, last = self._kept.pop()
            wire = last if last.reusable else None
        if wire is None:
            era = self._era  # before: a certificate that comes meanwhile may not be in it
            wire = await self._dial()
            wire.era = era
        self._busy.add(wire)
        return wire

    def give_back(self, wire: Wire) -> None:
        """Have a connection again; one whose answer was not read to its end is closed."""
        self._busy.discard(wire)
        if wire.reusable and wire.era == self._era:
            self._kept.append((time.monotonic(), wire))
        else:
            wire.abort()

    def use_certificate(self, renewals: int) -> None:
        """Make new connections if the client certificate is another one than before."""
        if renewals != self._renewals:
            self._renewals = renewals
            self.retire()

    def retire(self) -> None:
        """Use none of the present connections again; requests that are under way go on."""
        self._era += 1
        for _, wire in self._kept:
            wire.abort()
        self._kept.clear()

    async def close(self) -> None:
        """Close all, those in use too."""
        for wire in [*self._busy, *(wire for _, wire in self._kept)]:
            wire.abort()
        self._kept.clear()
        await self._sockets.hang_up()

    def _drop_old(self) -> None:
        oldest = time.monotonic() - KEPT
        while self._kept and self._kept[0][0] < oldest:
            self._kept.pop(0)[1].abort()

    def _read_authority(self) -> None:
        """Trust what is new in the file of authorities; a bad file changes nothing."""
        tls, file = self._connection.tls, self._connection.authority
        if tls is None or file is None or not self._authority.changed():
            return
        try:
            tls.load_verify_locations(
                cadata=certificates_in(file.read_bytes().decode(errors="replace"))
            )
        except (OSError, ValueError) as error:
            log.warning("authorities unreadable, using the last", file=str(file), error=str(error))

    async def _dial(self) -> Wire:
        self._read_authority()
        try:
            async with asyncio.timeout(CONNECT_LIMIT):
                return await dial(self._connection, self._sockets)
        except OSError as error:
            late = f"no connection in {CONNECT_LIMIT:.0f} s"
            why = late if isinstance(error, TimeoutError) else _said(error)
            raise ConnectionError(f"cannot connect to {self._connection.host}: {why}") from error


class Sockets:
    """Makes sockets, and remembers those that are open."""

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: Any) -> socket.socket:
        """A socket that notices within 30 s that the other machine is gone."""
        family, kind, protocol, _, _ = address
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEP_ALIVE:
            if hasattr(socket, name):  # Linux has all of them
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._made.add(sock)
        return sock

    async def hang_up(self) -> None:
        """End what the pool has let go of but is still open, and wait until it is gone.

        A connection may wait for TLS's farewell from its peer, for up to 30 s, and the event
        loop may be gone by then.
        """
        for _ in range(CLOSING_ROUNDS):
            still_open = [one for one in self._made if one.fileno() != -1]
            if not still_open:
                return
            for one in still_open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            await asyncio.sleep(0)


class Changes:
    """Whether a file has been changed or replaced since it was looked at last."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._seen = self._look()

    def _look(self) -> tuple[int, int, int] | None:
        try:
            stat = self._file.stat() if self._file else None
        except OSError:
            return None
        return (stat.st_ino, stat.st_mtime_ns, stat.st_size) if stat else None

    def changed(self) -> bool:
        """Whether it has; a file that is away for a moment has not."""
        seen = self._look()
        if seen is None or seen == self._seen:
            return False
        self._seen = seen
        return True


async def dial(connection: Connection, sockets: Sockets) -> Wire:
    """A new connection to the server, through the proxy if there is one, TLS verified."""
    server = urlsplit(connection.server)
    host = server.hostname or ""
    tls_name = connection.tls_server_name or host
    tls = None if server.scheme == "http" else connection.tls or verified_tls()
    loop = asyncio.get_running_loop()
    if connection.proxy is None:
        sock = await _connected(host, _port(server), sockets)
        _, wire = await loop.create_connection(
            Wire, sock=sock, ssl=tls, server_hostname=tls_name if tls else None
        )
        return wire
    target = f"{_bracketed(host)}:{_port(server)}"
    tunnel = await _tunnel(urlsplit(connection.proxy), target, sockets)
    if tls is None:
        return tunnel
    wire = Wire()
    try:
        transport = await loop.start_tls(tunnel.transport, wire, tls, server_hostname=tls_name)
    except BaseException:
        tunnel.abort()
        raise
    if transport is None:
        raise ConnectionResetError("the proxy closed the connection")
    wire.connection_made(transport)
    return wire


async def _tunnel(proxy: SplitResult, target: str, sockets: Sockets) -> Wire:
    """A connection to a proxy that passes everything on to the target."""
    host = proxy.hostname or ""
    if why := unusable_proxy(proxy.geturl()):
        raise ConnectionRefusedError(f"the proxy {why}")
    sock = await _connected(host, _port(proxy), sockets)
    secure = proxy.scheme == "https"
    _, wire = await asyncio.get_running_loop().create_connection(
        Wire,
        sock=sock,
        ssl=verified_tls() if secure else None,
        server_hostname=host if secure else None,
    )
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.username is not None:
        who = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
        lines.append(f"Proxy-Authorization: Basic {base64.b64encode(who.encode()).decode()}")
    try:
        answer = await wire.tunnelled("\r\n".join([*lines, "", ""]).encode())
        if not 200 <= answer.status < 300:
            raise ConnectionRefusedError(
                f"the proxy {host}:{_port(proxy)} answered {answer.status} to CONNECT"
            )
    except BaseException:
        wire.abort()
        raise
    return wire


async def _connected(host: str, port: int, sockets: Sockets) -> socket.socket:
    """A socket to the first of a host's addresses that takes us; a silent one is not waited for."""
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    sock = await start_connection(
        addresses, happy_eyeballs_delay=NEXT_ADDRESS, interleave=1, socket_factory=sockets.make
    )
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _said(error: OSError) -> str:
    """The reason alone, without the number and the call that come with some."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__


def _port(url: SplitResult) -> int:
    return url.port or (80 if url.scheme == "http" else 443)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
