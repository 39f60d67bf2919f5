"""A server that is out to harm its clients: bytes without end, numbers beyond all bounds, storms.

What it can cost is bounded, what a cache holds stays, and a cache that gets nothing says so.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.integration.kube.scripted_server import (
    CLOSE,
    LIMIT,
    Asked,
    Reply,
    answer,
    chunk,
    config_map,
    event,
    initial,
    listing,
    scripted,
    stream,
)
from tests.integration.kube.test_kube_misbehaving import TYPED, deleted, following, version

from quarterdeck.api.meta import CONFIG_MAPS, Object, Resource
from quarterdeck.kube import Client, Connection, ConnectionFailed, KubeError, UnexpectedAnswer
from quarterdeck.testing.waiting import eventually_async

A, B = config_map("a", 1), config_map("b", 2)
NEWER = config_map("a", 7)
GONE = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
FAILED = {"kind": "Status", "status": "Failure", "code": 500}
CHUNKED = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
MEGABYTE = 1 << 20
MANY = "9" * 5000
"""Digits, more than Python makes a number of."""


def end_of_all(digits: str) -> bytes:
    meta = {"resourceVersion": digits, "annotations": {"k8s.io/initial-events-end": "true"}}
    return event("BOOKMARK", {"metadata": meta})


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(
            [
                stream(
                    initial(5, A, B)
                    + event("BOOKMARK", {"metadata": {"resourceVersion": MANY}})
                    + event("MODIFIED", NEWER)
                )
            ],
            id="of a bookmark",
        ),
        pytest.param(
            [stream(event("ADDED", A) + end_of_all(MANY), ends=True)], id="of all objects"
        ),
        pytest.param([answer(400, {"kind": "Status"}), listing(MANY, A)], id="of a list"),
        pytest.param(
            [stream(initial(5, A, B), event("MODIFIED", config_map("a", 1, resourceVersion=MANY)))],
            id="of an object",
        ),
        pytest.param(
            [stream(initial(5, A, B), event("DELETED", config_map("a", 1, resourceVersion=MANY)))],
            id="of a deletion",
        ),
    ],
)
async def test_a_version_of_five_thousand_digits_ends_nothing(first: list[Reply]) -> None:
    replies = list(first)

    def script(asked: Asked) -> Reply:
        if replies:
            return replies.pop(0)
        return stream(initial(7, NEWER, B)) if asked.watch else listing(7, NEWER, B)

    async with scripted(script) as server, following(server) as (cache, changes):
        await eventually_async(lambda: version(cache, "a") == "7", "version 7 of a", LIMIT)
        assert deleted(changes) == []


async def test_who_says_gone_to_everything_is_in_trouble() -> None:
    """Once it is a reason to ask for all objects, and when those are asked for it is none."""

    def script(asked: Asked) -> Reply:
        return stream(initial(5, A), ends=True) if len(server.asked) == 1 else answer(410, GONE)

    async with scripted(script) as server, following(server) as (cache, changes):
        await eventually_async(lambda: cache.trouble != "", "the cache has trouble", LIMIT)
        assert cache.lost_for > 0
        assert deleted(changes) == []


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(stream(initial(5, A), event("ERROR", GONE)), id="too old"),
        pytest.param((stream(initial(5, A))[0], CLOSE), id="cut"),
        pytest.param(stream(initial(5, A), ends=True), id="ended in order"),
        pytest.param(stream(initial(5, A), event("ADDED", B), event("ERROR", FAILED)), id="failed"),
    ],
)
async def test_watches_that_bring_something_and_end_come_ever_less_often(
    reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    real: Callable[[float], Any] = asyncio.sleep

    async def noted(seconds: float) -> None:
        if seconds > 0.05:  # other waits are this test's own
            waits.append(seconds)
        await real(0)

    async with scripted(lambda _: reply) as server:
        monkeypatch.setattr("quarterdeck.kube.cache.asyncio.sleep", noted)
        async with following(server):
            async with asyncio.timeout(30):
                while len(waits) < 9:
                    await real(0.01)
            monkeypatch.undo()
    assert max(waits) > 10


@pytest.mark.parametrize("resource", [CONFIG_MAPS, TYPED], ids=["plain", "typed"])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"ok": True}, id="JSON"),
        pytest.param({"kind": "Status", "apiVersion": "v1", "status": "Success"}, id="a Status"),
        pytest.param({**A, "kind": "Secret"}, id="another kind"),
        pytest.param({**A, "apiVersion": "v2"}, id="another version"),
        pytest.param([A], id="several"),
    ],
)
async def test_another_object_than_the_one_asked_for_is_an_error(
    resource: Resource[Any], body: Any
) -> None:
    async with scripted(lambda _: answer(200, body)) as server, Client(server.connection) as client:
        with pytest.raises(UnexpectedAnswer, match="answer is not a ConfigMap"):
            await client.get(resource, "a", "n")
        with pytest.raises(UnexpectedAnswer, match="answer is not a ConfigMap"):
            await client.patch(resource, "a", {}, "n")


async def test_an_action_that_is_answered_with_garbage_has_failed() -> None:
    async with scripted(lambda _: answer(200, b"[")) as server, Client(server.connection) as client:
        with pytest.raises(UnexpectedAnswer, match="answer is not an object"):
            await client.post(CONFIG_MAPS, "a", "token", {}, "n")


@pytest.mark.parametrize("resource", [CONFIG_MAPS, TYPED], ids=["plain", "typed"])
@pytest.mark.parametrize("among_all", [True, False], ids=["among all objects", "later"])
async def test_an_event_about_another_kind_is_passed_over(
    resource: Resource[Any], among_all: bool
) -> None:
    other: Object = {**config_map("a", 6), "kind": "Secret"}

    def script(asked: Asked) -> Reply:
        first, then = (event("ADDED", other), b"") if among_all else (b"", event("MODIFIED", other))
        last = event("MODIFIED", config_map("b", 7))
        return stream(first + initial(5, A, B) + then + last) if asked.from_start else stream()

    async with scripted(script) as server, following(server, resource) as (cache, changes):
        await eventually_async(lambda: version(cache, "b") == "7", "version 7 of b", LIMIT)
        assert version(cache, "a") == "1"
        assert deleted(changes) == []


async def test_an_answer_that_is_packed_is_named() -> None:
    packed = answer(200, b"\x1f\x8b", Content_Encoding="gzip")
    async with scripted(lambda _: packed) as server, Client(server.connection) as client:
        with pytest.raises(UnexpectedAnswer, match="packed as gzip"):
            await client.get(CONFIG_MAPS, "a", "n")


async def test_a_date_beyond_the_calendar_is_none() -> None:
    date = "Fri, 31 Dec 1999 23:59:59 +999999999999999"
    async with (
        scripted(lambda _: answer(200, A, Date=date)) as server,
        Client(server.connection) as client,
    ):
        await client.get(CONFIG_MAPS, "a", "n")
        assert abs(client.now() - datetime.now(UTC)) < timedelta(minutes=1)


@asynccontextmanager
async def pouring(head: bytes, more: bytes) -> AsyncIterator[tuple[Connection, Callable[[], int]]]:
    """A server that begins to answer and does not stop; and how much it has sent."""
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head)
            while not writer.is_closing():
                writer.write(more)
                await writer.drain()
                sent += len(more)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1")
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Connection(server=f"http://127.0.0.1:{port}", tls=None), lambda: sent


@pytest.mark.parametrize("watch", [False, True], ids=["one object", "a watch"])
@pytest.mark.parametrize(
    ("head", "more", "why"),
    [
        pytest.param(
            b"HTTP/1.1 500 X\r\n" + CHUNKED, chunk(b"x" * MEGABYTE), "500: xxx", id="chunks"
        ),
        pytest.param(
            b"HTTP/1.1 403 X\r\nContent-Length: 99999999999\r\n\r\n",
            b"x" * MEGABYTE,
            "403: xxx",
            id="a long body",
        ),
        pytest.param(
            b"HTTP/1.0 404 X\r\n\r\n", b"x" * MEGABYTE, "404: xxx", id="a body of no length"
        ),
        pytest.param(
            b"HTTP/1.1 200 X\r\n" + CHUNKED + b"0\r\n",
            b"".join(b"x%d: y\r\n" % number for number in range(60_000)),
            "the trailer of the answer does not end",
            id="trailers",
        ),
        pytest.param(
            b"",
            b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000,
            "the head of the answer does not end",
            id="continue",
        ),
        pytest.param(
            b"HTTP/1.1 200 X\r\n",
            b"".join(b"x%d: y\r\n" % number for number in range(60_000)),
            "the head of the answer does not end",
            id="headers",
        ),
    ],
)
async def test_an_answer_without_end_is_given_up(
    head: bytes, more: bytes, why: str, watch: bool
) -> None:
    async with pouring(head, more) as (connection, sent), Client(connection) as client:
        events = client.watch(CONFIG_MAPS, "n", resource_version="5")
        ask = anext(events) if watch else client.patch(CONFIG_MAPS, "a", {}, "n")
        with pytest.raises(KubeError, match=why):
            await asyncio.wait_for(ask, 20)
        assert sent() < 20 * MEGABYTE


async def test_an_object_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quarterdeck.kube.http_connection.MAX_ANSWER_BYTES", 5 * MEGABYTE)
    head, more = b"HTTP/1.1 200 X\r\n" + CHUNKED, chunk(b"x" * MEGABYTE)
    async with pouring(head, more) as (connection, sent), Client(connection) as client:
        with pytest.raises(ConnectionFailed, match="more than 5242880 bytes"):
            await asyncio.wait_for(client.patch(CONFIG_MAPS, "a", {}, "n"), 20)
        assert sent() < 20 * MEGABYTE
