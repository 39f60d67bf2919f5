"""One HTTP/1.1 connection, without a network: what it makes of the bytes that come."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.kube.http_connection import READ_BUFFER_BYTES, Head, HttpConnection

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Line(asyncio.Transport):
    """The transport of a connection; records the calls."""

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


def connected() -> tuple[HttpConnection, Line]:
    http, line = HttpConnection(), Line()
    http.connection_made(line)
    return http, line


async def answered(http: HttpConnection, *pieces: bytes) -> tuple[Head, bytes]:
    """What a request is answered when these pieces come for it."""
    asking = asyncio.create_task(http.send(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    for piece in pieces:
        http.data_received(piece)
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
        http, _ = connected()
        for _ in range(2):  # on the same connection
            head, body = await answered(http, *pieces)
            assert (head.status, head.headers["content-type"]) == (200, "application/json")
            assert body == b"".join(parts)
            assert http.reusable

    asyncio.run(twice())


async def test_a_continue_comes_before_the_answer() -> None:
    http, _ = connected()
    head, body = await answered(http, b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\n", with_length([b"a"]))
    assert (head.status, body) == (200, b"a")
    assert "x" not in head.headers


async def test_a_server_that_says_close_is_not_asked_again() -> None:
    http, line = connected()
    said = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na"
    assert (await answered(http, said))[1] == b"a"
    assert line.closed
    assert not http.reusable


async def test_what_comes_behind_an_answer_spoils_only_the_connection() -> None:
    http, line = connected()
    head, body = await answered(http, with_length([b"a"]) + b"HTTP/1.1 500 No\r\nx: y\r\n\r\n")
    assert (head.status, body) == (200, b"a")
    assert "x" not in head.headers
    assert line.closed
    assert not http.reusable


async def test_what_comes_unasked_closes_the_connection() -> None:
    http, line = connected()
    http.data_received(with_length([b"a"]))
    assert line.closed
    assert not http.reusable


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
    http, line = connected()
    with pytest.raises(ConnectionResetError, match=why):
        await answered(http, sent)
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
    http, _ = connected()
    asking = asyncio.create_task(http.send(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    http.data_received(come)
    http.connection_lost(None)
    with pytest.raises(ConnectionResetError, match="the server closed the connection"):
        await asking


async def begun(http: HttpConnection) -> Head:
    asking = asyncio.create_task(http.open_stream(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    http.data_received(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    return await asking


async def test_a_stream_is_read_as_it_comes_and_to_the_cut() -> None:
    http, _ = connected()
    assert (await begun(http)).status == 200
    http.data_received(b"1\r\na\r\n1\r\nb\r\n")
    assert await anext(http) == b"ab"
    http.data_received(b"1\r\nc\r\n")
    http.fail(TimeoutError())
    assert await anext(http) == b"c"
    with pytest.raises(TimeoutError):
        await anext(http)


async def test_a_server_waits_for_a_slow_reader() -> None:
    http, line = connected()
    await begun(http)
    http.data_received(b"%x\r\n" % (2 * READ_BUFFER_BYTES) + b"x" * READ_BUFFER_BYTES)
    assert line.told == []
    http.data_received(b"y")
    assert line.told == ["wait"]
    assert len(await anext(http)) == READ_BUFFER_BYTES + 1
    assert line.told == ["wait", "go on"]


async def test_a_stream_that_was_not_read_to_its_end_is_not_used_again() -> None:
    http, _ = connected()
    await begun(http)
    http.data_received(b"1\r\na\r\n0\r\n\r\n")
    assert not http.reusable
    assert [part async for part in http] == [b"a"]
    assert http.reusable


@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"])
async def test_an_answer_without_a_length_ends_with_the_connection(version: bytes) -> None:
    http, _ = connected()
    asking = asyncio.create_task(http.send(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    http.data_received(version + b" 429 No\r\nRetry-After: 7\r\n\r\nslow")
    http.data_received(b" down")
    http.eof_received()
    http.connection_lost(None)
    head, body = await asking
    assert (head.status, head.headers["retry-after"], body) == (429, "7", b"slow down")
    assert not http.reusable


async def test_a_refusal_without_a_length_is_heard_even_if_it_is_cut_off() -> None:
    http, _ = connected()
    asking = asyncio.create_task(http.send(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    http.data_received(b"HTTP/1.0 503 No\r\nRetry-After: 7\r\n\r\nslow")
    http.connection_lost(ConnectionResetError())
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
    http, _ = connected()
    asking = asyncio.create_task(http.send(b"GET / HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    http.data_received(come)
    http.eof_received()
    http.connection_lost(None)
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
    http, line = connected()
    asking = asyncio.create_task(http.open_tunnel(b"CONNECT api:443 HTTP/1.1\r\n\r\n"))
    await asyncio.sleep(0)
    http.data_received(said)
    assert (await asking).status == 200
    assert not line.closed
    assert (await answered(http, with_length([b"a"])))[1] == b"a"
