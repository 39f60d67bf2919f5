"""The proxy does what it is told to, in front of a real API server."""

import asyncio
import socket
import time
from pathlib import Path

import msgspec
import pytest
from yarl import URL

from quarterdeck.api.meta import CONFIG_MAPS
from quarterdeck.kube import (
    Client,
    ConnectionFailed,
    RequestTimeout,
    ServerError,
    StaticHeader,
    TooManyRequests,
    Unauthorized,
)
from quarterdeck.testing.fault_proxy import (
    Answer,
    Cut,
    Delay,
    FaultProxy,
    Hold,
    Stall,
    StreamError,
    describe,
)
from quarterdeck.testing.plugin import Kubectl
from quarterdeck.testing.waiting import eventually_async


@pytest.mark.parametrize(
    ("method", "url", "verb", "resource"),
    [
        ("GET", "/api/v1/pods", "list", "pods"),
        ("GET", "/api/v1/namespaces/a/pods", "list", "pods"),
        ("GET", "/api/v1/namespaces/a/pods/b", "get", "pods"),
        ("GET", "/api/v1/namespaces", "list", "namespaces"),
        ("GET", "/api/v1/namespaces/a", "get", "namespaces"),
        ("PUT", "/api/v1/namespaces/a/finalize", "update", "namespaces/finalize"),
        ("GET", "/apis/apps/v1/deployments?watch=true", "watch", "deployments"),
        ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b", "patch", "deployments"),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/b/status",
            "patch",
            "deployments/status",
        ),
        ("POST", "/apis/apps/v1/namespaces/a/deployments", "create", "deployments"),
        ("DELETE", "/apis/apps/v1/namespaces/a/deployments/b", "delete", "deployments"),
        ("DELETE", "/apis/apps/v1/namespaces/a/deployments", "deletecollection", "deployments"),
        ("GET", "/version", "get", ""),
    ],
)
def test_a_request_is_described_as_in_an_audit_log(
    method: str, url: str, verb: str, resource: str
) -> None:
    seen = describe(method, URL(url))
    assert (seen.verb, seen.resource) == (verb, resource)


async def test_requests_pass_and_are_counted(fault_proxy: FaultProxy, namespace: str) -> None:
    async with Client(fault_proxy.connection()) as client:
        made = {"metadata": {"name": "a", "namespace": namespace}}
        await client.create(CONFIG_MAPS, made)
        await client.apply(CONFIG_MAPS, {**made, "data": {"x": "1"}}, field_manager="me")
        await client.list(CONFIG_MAPS, namespace)
    assert fault_proxy.count(verb="create", resource="configmaps") == 1
    assert fault_proxy.count(verb="patch") == 1
    assert fault_proxy.count() == 3
    assert fault_proxy.writes() == 2


async def test_an_answer_replaces_the_servers(fault_proxy: FaultProxy) -> None:
    fault_proxy.inject(Answer(500), resource="configmaps", times=1)
    async with Client(fault_proxy.connection()) as client:
        with pytest.raises(ServerError):
            await client.list(CONFIG_MAPS)
        await client.list(CONFIG_MAPS)


async def test_retry_after_is_sent_along(fault_proxy: FaultProxy) -> None:
    fault_proxy.inject(Answer(429, retry_after=99), times=None)
    async with Client(fault_proxy.connection()) as client:
        with pytest.raises(TooManyRequests) as caught:
            await client.list(CONFIG_MAPS)
    assert caught.value.retry_after == 99


async def test_a_delay_delays(fault_proxy: FaultProxy) -> None:
    fault_proxy.inject(Delay(0.5), verb="list")
    async with Client(fault_proxy.connection()) as client:
        started = time.monotonic()
        await client.list(CONFIG_MAPS)
    assert time.monotonic() - started >= 0.5


async def test_a_request_can_be_held_and_let_go(fault_proxy: FaultProxy, namespace: str) -> None:
    hold = Hold()
    fault_proxy.inject(hold, verb="create")
    async with Client(fault_proxy.connection()) as client:
        made = {"metadata": {"name": "held", "namespace": namespace}}
        task = asyncio.create_task(client.create(CONFIG_MAPS, made))
        await eventually_async(hold.held.is_set, "the request is held")
        listed = await client.list(CONFIG_MAPS, namespace, field_selector="metadata.name=held")
        assert listed.items == [], "the server has not seen it"
        hold.let_go.set()
        assert (await task)["metadata"]["name"] == "held"


async def test_a_cut_is_a_lost_connection(fault_proxy: FaultProxy) -> None:
    fault_proxy.inject(Cut(after=10), times=None)
    async with Client(fault_proxy.connection()) as client:
        with pytest.raises(ConnectionFailed):
            await client.raw("/openapi/v2")


async def test_a_stall_is_silence(fault_proxy: FaultProxy) -> None:
    fault_proxy.inject(Stall(after=10), times=None)
    async with Client(fault_proxy.connection(), timeout=1) as client:
        with pytest.raises(RequestTimeout):
            await client.raw("/openapi/v2")


async def test_a_watch_can_end_with_an_error_event(fault_proxy: FaultProxy) -> None:
    fault_proxy.inject(StreamError(500, "InternalError"), verb="watch")
    async with Client(fault_proxy.connection()) as client:
        with pytest.raises(ServerError):
            async for _ in client.watch(CONFIG_MAPS, resource_version="1"):
                pass


async def test_open_streams_can_be_cut(fault_proxy: FaultProxy, namespace: str) -> None:
    async with Client(fault_proxy.connection()) as client:
        listed = await client.list(CONFIG_MAPS, namespace)
        opened = asyncio.Event()

        async def follow() -> None:
            async for _ in client.watch(CONFIG_MAPS, resource_version=listed.resource_version):
                opened.set()

        task = asyncio.create_task(follow())
        await client.create(CONFIG_MAPS, {"metadata": {"name": "x", "namespace": namespace}})
        # Not cut before it is answered: the client would ask again by itself.
        async with asyncio.timeout(30):
            await opened.wait()
        assert await asyncio.to_thread(fault_proxy.cut_now) == 1
        with pytest.raises(ConnectionFailed):
            await task


async def test_a_token_is_passed_on_as_it_is(fault_proxy: FaultProxy) -> None:
    connection = msgspec.structs.replace(
        fault_proxy.connection(), credentials=StaticHeader.bearer("nonsense")
    )
    async with Client(connection) as client:
        with pytest.raises(Unauthorized):
            await client.list(CONFIG_MAPS)


def test_other_programs_can_use_it(
    fault_proxy: FaultProxy, kubectl: Kubectl, tmp_path: Path
) -> None:
    through = fault_proxy.write_kubeconfig(tmp_path / "config")
    kubectl("get", "--raw", "/version", kubeconfig=through)
    assert [seen.path for seen in fault_proxy.seen] == ["/version"]


async def test_a_connection_that_is_open_before_its_tls_handshake_is_closed_too(
    kubeconfig: Path,
) -> None:
    with FaultProxy(kubeconfig) as proxy:
        address = URL(proxy.url)
        connection = socket.create_connection((address.host or "", address.port or 0), timeout=10)
        # The proxy accepts in turn: once it has answered a later one, it has accepted this one.
        async with Client(proxy.connection()) as client:
            await client.raw("/version")
    with connection:
        assert connection.recv(1) == b""
