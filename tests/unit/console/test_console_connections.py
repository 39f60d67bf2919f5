"""Connections of clients that do not read what they are sent."""

import asyncio
import socket

import pytest

from quarterdeck.console import connections
from quarterdeck.console.connections import Connections
from quarterdeck.testing.waiting import eventually_async

MUCH = bytes(32_000_000)
"""More than the buffers of a connection hold."""


class _Talker(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(MUCH)


async def test_who_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READ_TIMEOUT", 0.1)
    made = Connections(_Talker)
    server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
    async with server:
        with socket.create_connection(server.sockets[0].getsockname()):
            await eventually_async(lambda: len(made) == 1, "the connection")
            await eventually_async(lambda: len(made) == 0, "it is cut off")


async def test_the_end_waits_for_no_client() -> None:
    made = Connections(_Talker)
    server = await asyncio.get_running_loop().create_server(made, "127.0.0.1", 0)
    async with server:
        with socket.create_connection(server.sockets[0].getsockname()):
            await eventually_async(lambda: len(made) == 1, "the connection")
            async with asyncio.timeout(10):
                await made.end()
            assert len(made) == 0
