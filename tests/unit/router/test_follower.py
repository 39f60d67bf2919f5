"""The last lines of a worker, from its ring to rsyslog; both are sockets of the test."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from quarterdeck.haproxy.sidecar import CANARY_TAG
from quarterdeck.router import late_sender
from quarterdeck.router.follower import Follower
from quarterdeck.router.late_sender import LateSender
from quarterdeck.router.way_back import WayBack

HEAD = "Nov 18 02:45:01 shop-7d9c haproxy[30000]: "
RING = (
    f"<142>{HEAD}arrived\n<140>{HEAD}Proxy public stopped (cumulated conns: FE: 1, BE: 0).\n"
    f"<142>{HEAD}last\n"
).encode()


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(path: Path, serve: Serve) -> AsyncIterator[None]:
    """A server that has ended all connections afterwards."""
    tasks: list[asyncio.Task[None] | None] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.current_task())
        await serve(reader, writer)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_unix_server(handle, path):
        yield
    await asyncio.gather(*filter(None, tasks))


async def worker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A worker that is told to stop as soon as somebody follows it."""
    assert await reader.readline() == b"show events access -w -n\n"
    writer.write(RING)
    await reader.read()


class Rsyslog:
    """What it has read; it reads nothing before it is told to."""

    def __init__(self, canaries: Path) -> None:
        self._canaries = canaries
        self.go_on = asyncio.Event()
        self.messages: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await self.go_on.wait()
        with suppress(asyncio.IncompleteReadError):
            while length := await reader.readuntil(b" "):
                self.messages.append((await reader.readexactly(int(length))).decode())
                if found := re.search(rf"{CANARY_TAG}: (\w+)", self.messages[-1]):
                    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                        sender.sendto(f"{found[1]} 0 0 0 now".encode(), str(self._canaries))


async def test_it_ends_only_when_rsyslog_has_read_the_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sidecar is ended as soon as the router has ended."""
    monkeypatch.setattr(late_sender, "ANSWER_TIMEOUT", 60.0)
    rsyslog = Rsyslog(tmp_path / "canary.sock")
    way_back = WayBack(tmp_path / "canary.sock")
    async with (
        listening(tmp_path / "admin.sock", worker),
        listening(tmp_path / "stream.sock", rsyslog.serve),
    ):
        follower = Follower(LateSender(str(tmp_path / "stream.sock"), way_back, 60.0), 1)
        await follower.attach(str(tmp_path / "admin.sock"), None)
        follower.set_served()
        running = asyncio.create_task(follower.run())
        assert not (await asyncio.wait([running], timeout=1))[0]
        rsyslog.go_on.set()
        async with asyncio.timeout(60):
            await running
        last, canary = rsyslog.messages
        assert last == f"<150>{HEAD}last"
        assert CANARY_TAG in canary
    way_back.close()
