"""One HTTP/1.1 connection, without a network: what it makes of the bytes that come."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.kube.wire import ENOUGH_HELD, Head, Wire

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Line(asyncio.Transport):
    """Where a wire writes to; notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.told: list[str] = []

    def write(self, data: Any) -> None:
        self.written += data

    def abort(self) -> None:
        self.closed = True

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.told.append("wait")

    def resume_reading(self) -> None:
        self.told.append("go on")


def connected() -> tuple[Wire, Line]:
    wire, line = Wire(), Line()
    wire.connection_made(line)
    return wire, line


async def answered(wire: Wire, *pieces: bytes) -> tuple[Head, bytes]:
    """What a request is answered when these pieces come for it."""
    asking = asyncio.create_task(wire.whole(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    for piece in pieces:
        wire.data_received(piece)
    return await asking


def with_length(parts: Sequence[bytes]) -> bytes:
    body = b"".join(parts)
    return OK + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunked(parts: Sequence[bytes]) -> bytes:
    chunks = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part]
    return OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(chunks) + b"0\r\n\r\n"


@given(
    parts=st.lists(st.binary(max_size=30), max_size=4),
    form=st.sampled_from([with_length, chunked]),
    cuts=st.sets(st.integers(1, 300)),
)
def test_however_an_answer_is_cut_it_is_the_same(
    parts: list[bytes], form: Callable[[Sequence[bytes]], bytes], cuts: set[int]
) -> None:
    data = form(parts)
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    pieces = [data[a:b] for a, b in pairwise(edges)]

    async def twice() -> None:
        wire, _ = connected()
        for _ in range(2):  # on the same connection
            head, body = await answered(wire, *pieces)
            assert (head.status, head.headers["content-type"]) == (200, "application/json")
            assert body == b"".join(parts)
            assert wire.reusable

    asyncio.run(twice())


async def test_a_continue_comes_before_the_answer() -> None:
    wire, _ = connected()
    head, body = await answered(wire, b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\n", with_length([b"a"]))
    assert (head.status, body) == (200, b"a")
    assert "x" not in head.headers


async def test_a_server_that_says_close_is_not_asked_again() -> None:
    wire, line = connected()
    said = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na"
    assert (await answered(wire, said))[1] == b"a"
    assert line.closed
    assert not wire.reusable


async def test_what_comes_behind_an_answer_spoils_only_the_connection() -> None:
    wire, line = connected()
    head, body = await answered(wire, with_length([b"a"]) + b"HTTP/1.1 500 No\r\nx: y\r\n\r\n")
    assert (head.status, body) == (200, b"a")
    assert "x" not in head.headers
    assert line.closed
    assert not wire.reusable


async def test_what_comes_unasked_closes_the_connection() -> None:
    wire, line = connected()
    wire.data_received(with_length([b"a"]))
    assert line.closed
    assert not wire.reusable


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        pytest.param(b"220 mail.example ESMTP\r\n", "does not speak HTTP", id="another protocol"),
        pytest.param(b"\x15\x03\x01\x00\x02\x02\x16", "does not speak HTTP", id="TLS"),
        pytest.param(OK + b"Content-Length: -1\r\n\r\n", "does not speak HTTP", id="bad length"),
        pytest.param(OK + b"x: " + b"y" * 100_000, "does not end", id="endless head"),
        pytest.param(
            b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
            "does not speak HTTP",
            id="an upgrade",
        ),
    ],
)
async def test_what_is_no_answer_is_refused(sent: bytes, why: str) -> None:
    wire, line = connected()
    with pytest.raises(ConnectionResetError, match=why):
        await answered(wire, sent)
    assert line.closed


@pytest.mark.parametrize(
    "come",
    [
        pytest.param(b"", id="before the answer"),
        pytest.param(OK, id="in its head"),
        pytest.param(with_length([b"abc"])[:-1], id="in a body with a length"),
        pytest.param(chunked([b"abc"])[:-3], id="in a body of chunks"),
        pytest.param(OK + b"\r\nabc", id="in a body that says nothing of its end"),
    ],
)
async def test_an_answer_that_is_cut_off_is_none(come: bytes) -> None:
    wire, _ = connected()
    asking = asyncio.create_task(wire.whole(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    wire.data_received(come)
    wire.connection_lost(None)
    with pytest.raises(ConnectionResetError, match="the server closed the connection"):
        await asking


async def begun(wire: Wire) -> Head:
    asking = asyncio.create_task(wire.begun(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    wire.data_received(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    return await asking


async def test_a_stream_is_read_as_it_comes_and_to_the_cut() -> None:
    wire, _ = connected()
    assert (await begun(wire)).status == 200
    wire.data_received(b"1\r\na\r\n1\r\nb\r\n")
    assert await anext(wire) == b"ab"
    wire.data_received(b"1\r\nc\r\n")
    wire.lose(TimeoutError())
    assert await anext(wire) == b"c"
    with pytest.raises(TimeoutError):
        await anext(wire)


async def test_a_server_waits_for_a_slow_reader() -> None:
    wire, line = connected()
    await begun(wire)
    wire.data_received(b"%x\r\n" % (2 * ENOUGH_HELD) + b"x" * ENOUGH_HELD)
    assert line.told == []
    wire.data_received(b"y")
    assert line.told == ["wait"]
    assert len(await anext(wire)) == ENOUGH_HELD + 1
    assert line.told == ["wait", "go on"]


async def test_a_stream_that_was_not_read_to_its_end_is_not_used_again() -> None:
    wire, _ = connected()
    await begun(wire)
    wire.data_received(b"1\r\na\r\n0\r\n\r\n")
    assert not wire.reusable
    assert [part async for part in wire] == [b"a"]
    assert wire.reusable


@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"])
async def test_an_answer_without_a_length_ends_with_the_connection(version: bytes) -> None:
    wire, _ = connected()
    asking = asyncio.create_task(wire.whole(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    wire.data_received(version + b" 429 No\r\nRetry-After: 7\r\n\r\nslow")
    wire.data_received(b" down")
    wire.eof_received()
    wire.connection_lost(None)
    head, body = await asking
    assert (head.status, head.headers["retry-after"], body) == (429, "7", b"slow down")
    assert not wire.reusable


async def test_a_refusal_without_a_length_is_heard_even_if_it_is_cut_off() -> None:
    wire, _ = connected()
    asking = asyncio.create_task(wire.whole(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    wire.data_received(b"HTTP/1.0 503 No\r\nRetry-After: 7\r\n\r\nslow")
    wire.connection_lost(ConnectionResetError())
    head, _ = await asking
    assert (head.status, head.headers["retry-after"]) == (503, "7")


@pytest.mark.parametrize(
    "come",
    [
        pytest.param(OK, id="in its head"),
        pytest.param(with_length([b"abc"])[:-1], id="in a body with a length"),
        pytest.param(chunked([b"abc"])[:-3], id="in a body of chunks"),
    ],
)
async def test_the_end_of_the_connection_is_not_the_end_of_an_answer_with_a_length(
    come: bytes,
) -> None:
    wire, _ = connected()
    asking = asyncio.create_task(wire.whole(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    wire.data_received(come)
    wire.eof_received()
    wire.connection_lost(None)
    with pytest.raises(ConnectionResetError, match="the server closed the connection"):
        await asking


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", id="1.1"
        ),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", id="1.0"),
        pytest.param(b"HTTP/1.0 200 OK\r\n\r\n", id="1.0 without a length"),
    ],
)
async def test_a_proxy_that_says_close_to_a_connect_does_not_mean_the_tunnel(said: bytes) -> None:
    wire, line = connected()
    asking = asyncio.create_task(wire.tunnelled(b"CONNECT api:443 HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    wire.data_received(said)
    assert (await asking).status == 200
    assert not line.closed
    assert (await answered(wire, with_length([b"a"])))[1] == b"a"
