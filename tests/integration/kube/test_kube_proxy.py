"""The client through a forward proxy, as companies have them, to the real API server."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from quarterdeck.api.meta import CONFIG_MAPS, NAMESPACES
from quarterdeck.kube import Client, Connection, ConnectionFailed, load_kubeconfig
from quarterdeck.kube.watch_events import Modified
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.certificates import certificate_path, key_path

AUTHORIZATION = b"Proxy-Authorization: Basic bWU6cCB3\r\n"
"""`me` with the password `p w`."""


class ForwardProxy:
    """Passes bytes between its clients and whatever they CONNECT to; lets in only `me`."""

    def __init__(self) -> None:
        self.port = 0
        self.said = b""
        """Headers of its answer to a CONNECT."""
        self.tunnels: list[str] = []
        self._open: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield
            await asyncio.gather(*self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.create_task(self._tunnel(reader, writer))
        self._open.add(serving)
        serving.add_done_callback(self._open.discard)

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        target = head.split()[1].decode()
        if AUTHORIZATION not in head:
            writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno")
            writer.close()
            return
        self.tunnels.append(target)
        host, _, port = target.rpartition(":")
        inward, outward = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n" + self.said + b"\r\n")
        await asyncio.gather(_pass_on(reader, outward), _pass_on(inward, writer))


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except ConnectionError:
        pass
    finally:
        sink.close()


def through(kubeconfig: Path, proxy: str) -> Connection:
    return msgspec.structs.replace(load_kubeconfig(kubeconfig), proxy=proxy)


async def reads_writes_and_watches(client: Client, namespace: str) -> None:
    """Each of the three kinds of requests, on kept connections."""
    made = await client.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": namespace}})
    version = made["metadata"]["resourceVersion"]
    watch = client.watch(CONFIG_MAPS, namespace, resource_version=version)
    await client.patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, namespace)
    event = await anext(watch)
    assert isinstance(event, Modified)
    assert event.object["data"] == {"x": "1"}
    await watch.aclose()


async def test_through_a_proxy_with_a_password(kubeconfig: Path, namespace: str) -> None:
    proxy = ForwardProxy()
    async with proxy.serving():
        connection = through(kubeconfig, f"http://me:p%20w@127.0.0.1:{proxy.port}")
        async with Client(connection) as client:
            await reads_writes_and_watches(client, namespace)
    assert set(proxy.tunnels) == {connection.host}


@pytest.mark.parametrize(
    "said", [b"Connection: close\r\n", b"Connection: close\r\nContent-Length: 0\r\n"]
)
async def test_through_a_proxy_that_says_close(
    kubeconfig: Path, namespace: str, said: bytes
) -> None:
    proxy = ForwardProxy()
    proxy.said = said
    async with proxy.serving():
        connection = through(kubeconfig, f"http://me:p%20w@127.0.0.1:{proxy.port}")
        async with Client(connection) as client:
            await reads_writes_and_watches(client, namespace)


async def test_a_socks_proxy_is_not_spoken_to_as_http(kubeconfig: Path) -> None:
    connection = through(kubeconfig, "socks5://me:hunter2@127.0.0.1:1")
    async with Client(connection, timeout=1) as client:
        with pytest.raises(ConnectionFailed, match="only http and https proxies") as caught:
            await client.get(NAMESPACES, "default")
    assert "hunter2" not in str(caught.value)


async def test_through_a_proxy_that_is_reached_by_tls(
    control_plane: ControlPlane, kubeconfig: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pki = control_plane.layout.pki
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate_path(pki, "kube-apiserver"), key_path(pki, "kube-apiserver"))
    proxy = ForwardProxy()
    async with proxy.serving(tls):
        connection = through(kubeconfig, f"https://me:p%20w@127.0.0.1:{proxy.port}")
        async with Client(connection, timeout=5) as client:
            with pytest.raises(ConnectionFailed, match="certificate verify failed"):
                await client.get(NAMESPACES, "default")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate_path(pki, "ca")))
        async with Client(connection) as client:
            await reads_writes_and_watches(client, namespace)
    assert set(proxy.tunnels) == {connection.host}


async def test_a_proxy_that_does_not_let_us_through_is_named(kubeconfig: Path) -> None:
    proxy = ForwardProxy()
    async with proxy.serving():
        connection = through(kubeconfig, f"http://127.0.0.1:{proxy.port}")
        async with Client(connection, timeout=1) as client:
            with pytest.raises(
                ConnectionFailed, match=r"the proxy 127.0.0.1:\d+ answered 407 to CONNECT"
            ) as caught:
                await client.get(NAMESPACES, "default")
    assert not caught.value.sent
    assert proxy.tunnels == []
