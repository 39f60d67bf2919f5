"""The socket on which canaries come back: who waits learns of its end, and nothing is kept."""

import asyncio
import socket
from pathlib import Path

import pytest

from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.render import CANARY_BIND
from quarterdeck.router.canary import SidecarCanary
from quarterdeck.router.late_sender import LateSender
from quarterdeck.router.way_back import WayBack


def send(path: Path, text: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(text.encode(), str(path))


async def test_who_waits_goes_on_when_the_socket_is_opened_again(tmp_path: Path) -> None:
    """A wait that is cancelled from inside would end the router."""
    back = WayBack(tmp_path / "canary.sock")
    with back.expecting("first") as first:
        back.path.unlink()
        with back.expecting("second") as second:
            assert not first.done()
            send(back.path, " second 7 3 4 Nov 18 02:45:00")
            async with asyncio.timeout(60):
                assert (await second).of_ring == (3, 4)
        send(back.path, " first 8 3 5 Nov 18 02:45:00")
        async with asyncio.timeout(60):
            assert (await first).lines == 8
    back.close()


async def test_who_waits_when_it_is_closed_is_told_and_not_cancelled(tmp_path: Path) -> None:
    back = WayBack(tmp_path / "canary.sock")
    with back.expecting("first") as first:
        back.close()
        with pytest.raises(ConnectionAbortedError):
            await first


async def test_what_is_no_canary_is_passed_over(tmp_path: Path) -> None:
    back = WayBack(tmp_path / "canary.sock")
    with back.expecting("wanted") as wanted:
        for text in ("", "other 1 0 0 x", "other " * 1000, "\x00\xff", "wanted 5 2 3 now"):
            send(back.path, text)
        async with asyncio.timeout(60):
            assert (await wanted).lines == 5
    back.close()


async def test_a_canary_whose_way_back_goes_has_not_arrived(tmp_path: Path) -> None:
    log = tmp_path / "log.sock"
    log.touch()
    taken = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.0 204 No Content\r\n\r\n")
        writer.close()
        taken.set()

    canary = SidecarCanary(AccessLog(address=str(log)), str(tmp_path))
    async with await asyncio.start_unix_server(take, tmp_path / CANARY_BIND):
        trying = asyncio.create_task(canary.try_once(limit=60))
        await taken.wait()
        canary.close()
        outcome = await trying
    assert (outcome.arrives, outcome.reason) == (False, "NoWayBack")


async def test_what_was_not_sent_is_not_waited_for(tmp_path: Path) -> None:
    """While HAProxy or rsyslog is away there are thousands of them."""
    log = tmp_path / "log.sock"
    log.touch()
    canary = SidecarCanary(AccessLog(address=str(log)), str(tmp_path))
    sender = LateSender(str(tmp_path / "none"), canary.way_back, give_up_after=1)
    for _ in range(3):
        assert (await canary.try_once()).reason == "RouterNotServing"
        assert await sender.ask() is None
    assert not canary.way_back._expected
    canary.close()
