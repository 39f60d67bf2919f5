"""The sockets of one client: how they are made, and that none is left when it is closed."""

import asyncio
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

KEEP_ALIVE = (
    ("TCP_KEEPIDLE", 30),
    ("TCP_KEEPINTVL", 10),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 60_000),
)
CLOSING_ROUNDS = 10
"""Turns of the event loop; a socket that was shut down is closed in the third."""


class Sockets:
    """Makes sockets, and remembers those that are open."""

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: Any) -> socket.socket:
        """A socket that notices within a minute that the other machine is gone."""
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
