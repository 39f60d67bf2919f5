"""A cache whose server, or somebody on the way to it, answers what nobody asked for.

What it holds stays, no deletion is reported, and the next good answer is taken.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.integration.kube.scripted_server import (
    CLOSE,
    HANG,
    LIMIT,
    Asked,
    Reply,
    ScriptedServer,
    answer,
    config_map,
    event,
    initial,
    listing,
    scripted,
    stream,
)

from quarterdeck.api.meta import CONFIG_MAPS, Key, Object, Resource, TypedObject
from quarterdeck.backoff import Backoff
from quarterdeck.kube import (
    ApiError,
    Cache,
    Change,
    Client,
    NotFound,
    ServerError,
    UnexpectedAnswer,
)
from quarterdeck.kube.cache import WATCH_TIMEOUT
from quarterdeck.kube.client import WATCH_END_GRACE_PERIOD
from quarterdeck.kube.connection_pool import Sockets
from quarterdeck.testing.waiting import eventually_async

HTML = b"<html>\n<h1>default backend - 404</h1>\n</html>\n"
NOT_FOUND = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}
CORE = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [{"name": "configmaps", "namespaced": True}],
}
A, B = config_map("a", 1), config_map("b", 2)


class Typed(TypedObject):
    """A ConfigMap as a type."""


TYPED = Resource(
    group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True, type=Typed
)


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches try again at once: for tests of what they do then, and not of when."""
    at_once = Backoff(base=0.01, limit=0.1)
    monkeypatch.setattr("quarterdeck.kube.cache.RETRY_BACKOFF", at_once)
    monkeypatch.setattr("quarterdeck.kube.cache.UNIDENTIFIED_EVENT_BACKOFF", at_once)


@asynccontextmanager
async def following(
    server: ScriptedServer, resource: Resource[Any] = CONFIG_MAPS
) -> AsyncIterator[tuple[Cache[Any], list[Change[Any]]]]:
    """A running cache, synced, and the changes that it reports."""
    async with Client(server.connection) as client:
        cache: Cache[Any] = Cache(client, resource, namespace="n")
        changes: list[Change[Any]] = []
        cache.subscribe(changes.append)
        task = asyncio.create_task(cache.run())
        try:
            await eventually_async(
                lambda: cache.synced or task.done(), "the cache is synced or has ended", LIMIT
            )
            yield cache, changes
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def deleted(changes: list[Change[Any]]) -> list[Key]:
    return [change.key for change in changes if change.new is None]


FAULTS = [
    pytest.param(answer(404, HTML, "text/html"), id="a load balancer's 404"),
    pytest.param(answer(404, b"404 page not found\n", "text/plain"), id="404 of a proxy in Go"),
    pytest.param(answer(404, NOT_FOUND), id="404 as of an API server"),
    pytest.param(answer(302, b"", "text/html", Location="/login"), id="a redirect"),
    pytest.param(answer(200, HTML, "text/html"), id="a page"),
    pytest.param(answer(200, HTML), id="a page that says it is JSON"),
    pytest.param(answer(200, b"<html>"), id="a page without a line break"),
    pytest.param(answer(200, {"ok": True}), id="JSON of another kind"),
    pytest.param(answer(204), id="nothing"),
]


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize("fault", FAULTS)
async def test_an_answer_to_a_watch_that_is_none_empties_no_cache(fault: bytes) -> None:
    faulty = 0

    def script(asked: Asked) -> Reply:
        nonlocal faulty
        if asked.path == "/api/v1":
            return answer(200, CORE)
        if faulty == 0:
            faulty = 1
            return stream(initial(5, A, B), ends=True)
        if faulty <= 2:
            faulty += 1
            return fault
        if asked.from_start:
            return stream(initial(6, A, config_map("b", 6)))
        return stream(event("MODIFIED", config_map("b", 6)))

    async with scripted(script) as server, following(server) as (cache, changes):
        await eventually_async(lambda: cache.trouble != "", "the cache has trouble", LIMIT)
        assert len(cache) == 2
        await eventually_async(lambda: faulty == 3, "three faulty answers", LIMIT)
        assert not cache.missing
        await eventually_async(lambda: version(cache, "b") == "6", "version 6 of b", LIMIT)
        assert cache.trouble == ""
        assert deleted(changes) == []


def version(cache: Cache[Any], name: str) -> str | None:
    found = cache.get(Key("n", name))
    if isinstance(found, TypedObject):
        return found.metadata.resource_version
    return found["metadata"]["resourceVersion"] if found else None


LISTS = [
    *FAULTS,
    pytest.param(answer(200, {"metadata": {"resourceVersion": "9"}}), id="an object, no list"),
    pytest.param(
        answer(200, {"metadata": {"resourceVersion": "9"}, "items": []}), id="a list of no kind"
    ),
    pytest.param(
        answer(
            200,
            {
                "apiVersion": "meta.k8s.io/v1",
                "kind": "PartialObjectMetadataList",
                "metadata": {"resourceVersion": "9"},
                "items": [],
            },
        ),
        id="a list of another kind",
    ),
    pytest.param(
        listing(9, {"metadata": None}),
        id="a list with an object that has no name",
    ),
]


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize("fault", LISTS)
async def test_an_answer_to_a_list_that_is_none_empties_no_cache(fault: bytes) -> None:
    faulty = 0

    def script(asked: Asked) -> Reply:
        nonlocal faulty
        if asked.path == "/api/v1":
            return answer(200, CORE)
        if faulty == 0:
            faulty = 1
            return stream(initial(5, A, B), event("ERROR", {"kind": "Status", "code": 410}))
        if asked.from_start:
            return answer(400, {"kind": "Status"})
        if not asked.watch and faulty <= 2:
            faulty += 1
            return fault
        if not asked.watch:
            return listing(6, A, config_map("b", 6))
        return stream()

    async with scripted(script) as server, following(server) as (cache, changes):
        await eventually_async(lambda: version(cache, "b") == "6", "version 6 of b", LIMIT)
        assert faulty == 3
        assert deleted(changes) == []


async def test_a_kind_that_discovery_no_longer_has_is_gone() -> None:
    """Twice not found, and the server's own list does not have it: the objects went with it."""
    gone = False

    def script(asked: Asked) -> Reply:
        nonlocal gone
        if asked.path == "/api/v1":
            return answer(200, {**CORE, "resources": []})
        if gone:
            return answer(404, b"404 page not found\n", "text/plain")
        gone = True
        return stream(initial(5, A, B), ends=True)

    async with scripted(script) as server, following(server) as (cache, changes):
        await eventually_async(lambda: cache.missing, "the kind is missing", LIMIT)
        assert len(cache) == 0
        assert set(deleted(changes)) == {Key("n", "a"), Key("n", "b")}
        asked = [one for one in server.asked if one.path == "/api/v1"]
        assert len(asked) == 1


@pytest.mark.parametrize(
    ("body", "form", "error"),
    [
        pytest.param(HTML, "text/html", ApiError, id="a load balancer's page"),
        pytest.param(b"404 page not found\n", "text/plain", NotFound, id="no such kind"),
        pytest.param(b'{"kind":"Status","code":404}', "application/json", NotFound, id="no object"),
    ],
)
async def test_only_the_api_server_says_that_an_object_is_not_there(
    body: bytes, form: str, error: type[ApiError]
) -> None:
    async with (
        scripted(lambda _: answer(404, body, form)) as server,
        Client(server.connection) as client,
    ):
        with pytest.raises(ApiError) as caught:
            await client.get(CONFIG_MAPS, "a", "n")
        assert type(caught.value) is error


@pytest.mark.parametrize(
    ("reply", "error", "why"),
    [
        pytest.param(
            answer(302, b"", "text/html", Location="/login"),
            ApiError,
            "302: redirects are not followed",
            id="a redirect",
        ),
        pytest.param(
            answer(200, HTML, "text/html"), UnexpectedAnswer, "text/html, not JSON", id="a page"
        ),
    ],
)
async def test_a_write_is_not_done_because_somebody_answered(
    reply: bytes, error: type[Exception], why: str
) -> None:
    async with scripted(lambda _: reply) as server, Client(server.connection) as client:
        with pytest.raises(error, match=why):
            await client.patch(CONFIG_MAPS, "a", {"data": {}}, "n")
        with pytest.raises(error, match=why):
            await client.delete(CONFIG_MAPS, "a", "n")


def without(field: str) -> Object:
    obj = config_map("b", 6)
    del obj["metadata"][field]
    return obj


MALFORMED = [
    pytest.param(event("MODIFIED", without("uid")), id="no uid"),
    pytest.param(event("MODIFIED", without("resourceVersion")), id="no version"),
    pytest.param(event("MODIFIED", without("name")), id="no name"),
    pytest.param(event("MODIFIED", config_map("b", 6, resourceVersion="x")), id="a worded version"),
    pytest.param(event("MODIFIED", {"metadata": None}), id="null metadata"),
    pytest.param(event("MODIFIED", {}), id="no metadata"),
    pytest.param(event("MODIFIED", None), id="no object"),
    pytest.param(event("MODIFIED", config_map("b", 6, managedFields=[None])), id="no manager"),
    pytest.param(event("DELETED", {"metadata": {}}), id="a deletion of nobody knows what"),
    pytest.param(event("BOOKMARK", {}), id="an empty bookmark"),
    pytest.param(event("BOOKMARK", None), id="no bookmark"),
    pytest.param(event("BOOKMARK", {"metadata": {"resourceVersion": ""}}), id="a bookmark of none"),
    pytest.param(event("ERROR", None), id="an error without a status"),
    pytest.param(event("NOVELTY", config_map("b", 6)), id="a type that is not known"),
]


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize("resource", [CONFIG_MAPS, TYPED], ids=["plain", "typed"])
@pytest.mark.parametrize("malformed", MALFORMED)
async def test_a_malformed_event_costs_only_itself(
    malformed: bytes, resource: Resource[Any]
) -> None:
    """Behind it comes a good one, in the same stream or in the one after all objects again."""

    def script(asked: Asked) -> Reply:
        if len(server.asked) == 1:
            return stream(initial(5, A, B) + malformed + event("MODIFIED", config_map("a", 7)))
        if not asked.watch:
            return listing(7, config_map("a", 7), B)
        changed = config_map("a", 7)
        return stream(initial(7, changed, B) if asked.from_start else event("MODIFIED", changed))

    async with scripted(script) as server, following(server, resource) as (cache, changes):
        await eventually_async(lambda: version(cache, "a") == "7", "version 7 of a", LIMIT)
        assert cache.get(Key("n", "b")) is not None
        assert deleted(changes) == []


@pytest.mark.parametrize("resource", [CONFIG_MAPS, TYPED], ids=["plain", "typed"])
@pytest.mark.parametrize("malformed", MALFORMED)
async def test_a_malformed_event_among_all_objects_ends_nothing(
    malformed: bytes, resource: Resource[Any]
) -> None:
    def script(asked: Asked) -> Reply:
        if len(server.asked) == 1:
            return stream(malformed + initial(7, A, B), ends=True)
        if not asked.watch:
            return listing(7, A, B)
        return stream(initial(7, A, B) if asked.from_start else b"")

    async with scripted(script) as server, following(server, resource) as (cache, changes):
        await eventually_async(
            lambda: cache.synced and version(cache, "a") == "1", "synced with version 1 of a", LIMIT
        )
        assert deleted(changes) == []


async def test_a_subscribers_own_fault_is_not_taken_for_a_malformed_event() -> None:
    def fails(change: Change[Object]) -> None:
        raise KeyError("of the subscriber")

    def script(asked: Asked) -> Reply:
        return stream(initial(5), event("ADDED", A))

    async with scripted(script) as server, Client(server.connection) as client:
        cache = Cache(client, CONFIG_MAPS, namespace="n")
        cache.subscribe(fails)
        with pytest.raises(KeyError, match="of the subscriber"):
            async with asyncio.timeout(30):
                await cache.run()


async def test_a_server_that_sends_only_garbage_is_not_asked_in_a_storm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits: list[float] = []
    real: Callable[[float], Any] = asyncio.sleep

    async def noted(seconds: float) -> None:
        waits.append(seconds)
        await real(0)

    garbage = stream(initial(5, A), event("MODIFIED", {}), event("ADDED", B))
    async with scripted(lambda _: garbage) as server, following(server):
        monkeypatch.setattr("quarterdeck.kube.cache.asyncio.sleep", noted)
        while len(waits) < 8:
            await real(0.01)
        monkeypatch.undo()
    assert max(waits) > 20


async def test_after_an_outage_a_watch_that_is_too_old_is_listed_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It waited once more as long as after the last failure, though the server answered."""
    waits: list[float] = []
    real: Callable[[float], Any] = asyncio.sleep

    async def noted(seconds: float) -> None:
        waits.append(seconds)
        await real(0)

    expired = answer(410, {"kind": "Status", "code": 410, "reason": "Expired"})
    replies: list[Reply] = [stream(initial(5, A), ends=True), *[(CLOSE,)] * 6, expired]

    def script(asked: Asked) -> Reply:
        return replies.pop(0) if replies else stream(initial(9, A, B))

    async with scripted(script) as server:
        monkeypatch.setattr("quarterdeck.kube.cache.asyncio.sleep", noted)
        async with following(server) as (cache, _):
            async with asyncio.timeout(30):
                while version(cache, "b") is None:
                    await real(0.01)
            monkeypatch.undo()
    assert max(waits[:-1]) > 3
    assert waits[-1] < 0.5


async def test_a_wait_of_a_day_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    real: Callable[[float], Any] = asyncio.sleep

    async def noted(seconds: float) -> None:
        waits.append(seconds)
        await real(0)

    replies: list[Reply] = [
        stream(initial(5, A), ends=True),
        answer(503, Retry_After="100000"),
        answer(429, Retry_After="inf"),
        answer(429, {"kind": "Status", "details": {"retryAfterSeconds": 100000}}),
    ]

    def script(asked: Asked) -> Reply:
        return replies.pop(0) if replies else stream(event("ADDED", B))

    async with scripted(script) as server:
        monkeypatch.setattr("quarterdeck.kube.cache.asyncio.sleep", noted)
        async with following(server) as (cache, _):
            async with asyncio.timeout(30):
                while version(cache, "b") is None:
                    await real(0.01)
            monkeypatch.undo()
    assert max(waits) == 30


@pytest.mark.parametrize("same", [True, False], ids=["the same page", "ever new pages"])
async def test_a_list_that_does_not_end_is_given_up(
    same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.kube.client.MAX_PAGES", 20)

    def script(asked: Asked) -> Reply:
        token = "again" if same else f"page-{len(server.asked)}"
        return listing(9, A, **{"continue": token})

    async with scripted(script) as server, Client(server.connection) as client:
        with pytest.raises(UnexpectedAnswer, match=r"the list (repeats a page|does not end)"):
            async with asyncio.timeout(30):
                await client.list(CONFIG_MAPS, "n")
        assert len(server.asked) == (2 if same else 20)


async def test_a_silent_server_is_noticed_within_two_minutes() -> None:
    """By the kernel if the machine is gone, and else because it does not end the watch in time."""
    async with (
        scripted(lambda _: stream(initial(5, A))) as server,
        following(server) as (cache, _),
    ):
        [asked] = server.asked
        assert cache.synced
        told_to_end = float(asked.query["timeoutSeconds"])
        assert told_to_end + WATCH_END_GRACE_PERIOD <= 120
        assert WATCH_TIMEOUT * 1.5 + WATCH_END_GRACE_PERIOD <= 120
    made = Sockets().make((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1)))
    with made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle, every, times, under_way = (
            made.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
        )
    assert idle + every * times <= 30
    assert under_way <= 30_000


async def test_an_answer_that_ends_with_the_connection_is_one() -> None:
    head = b"HTTP/1.0 503 Busy\r\nContent-Type: text/plain\r\nRetry-After: 77\r\n\r\n"
    async with (
        scripted(lambda _: (head + b"come back later", CLOSE)) as server,
        Client(server.connection) as client,
    ):
        with pytest.raises(ServerError, match="503: come back later") as caught:
            await client.get(CONFIG_MAPS, "a", "n")
        assert caught.value.retry_after == 77


async def test_a_watch_through_a_proxy_of_http_1_0() -> None:
    head = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n"

    def script(asked: Asked) -> Reply:
        if asked.from_start:
            return head + initial(5, A), CLOSE
        return head + event("ADDED", B), HANG

    async with scripted(script) as server, following(server) as (cache, changes):
        await eventually_async(lambda: len(cache) == 2, "two objects", LIMIT)
        assert deleted(changes) == []
