"""The log endpoint by itself, over TLS: who is answered, and what happens when a reader goes."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from quarterdeck.localcluster.certificates import make_certificates
from quarterdeck.localcluster.node.logs.query import LogQuery
from quarterdeck.localcluster.node.logs.reader import read
from quarterdeck.localcluster.node.logs.server import LogServer, NoLogError, Serving
from quarterdeck.localcluster.node.logs.writer import LogWriter
from quarterdeck.localcluster.node.times import parse_time

NOW = parse_time("2026-03-01T12:00:00Z")


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pki")
    make_certificates(directory)
    return directory


class Endpoint:
    """A log that is being written, served; `readers` counts who reads it now."""

    def __init__(self, pki: Path, log: LogWriter) -> None:
        self.pki, self.log, self.readers = pki, log, 0
        self.changed = asyncio.Event()
        serving = Serving(
            certificate=pki / "this-machine.crt",
            key=pki / "this-machine.key",
            authority=pki / "ca.crt",
            client="system:quarterdeck:kubelet-client",
            cluster="--name dev",
        )
        self.server = LogServer(serving, self.open)

    def open(
        self, namespace: str, pod: str, container: str, query: LogQuery
    ) -> AsyncGenerator[bytes, None]:
        if pod != "pod":
            raise NoLogError("no such pod here")
        return self.counted(query)

    async def counted(self, query: LogQuery) -> AsyncGenerator[bytes, None]:
        self.readers += 1
        self.changed.set()
        try:
            async for chunk in read(self.log.path, query, NOW, self.log):
                yield chunk
        finally:
            self.readers -= 1
            self.changed.set()

    async def until_read_by(self, readers: int) -> None:
        async with asyncio.timeout(30):
            while self.readers != readers:
                self.changed.clear()
                await self.changed.wait()

    def session(self, user: str) -> aiohttp.ClientSession:
        tls = ssl.create_default_context(cafile=self.pki / "ca.crt")
        tls.load_cert_chain(self.pki / f"{user}.crt", self.pki / f"{user}.key")
        return aiohttp.ClientSession(
            f"https://127.0.0.1:{self.port}", connector=aiohttp.TCPConnector(ssl=tls)
        )

    port = 0


@pytest.fixture
async def endpoint(pki: Path, tmp_path: Path) -> AsyncIterator[Endpoint]:
    endpoint = Endpoint(pki, LogWriter(tmp_path / "0.log"))
    endpoint.port = await endpoint.server.start()
    yield endpoint
    await endpoint.server.stop()


async def test_a_follower_sees_lines_as_they_come_and_the_end(endpoint: Endpoint) -> None:
    endpoint.log.feed("stdout", b"one\n")
    async with (
        endpoint.session("kubelet-client") as session,
        session.get("/containerLogs/ns/pod/c", params={"follow": "true"}) as answer,
    ):
        assert await answer.content.readline() == b"one\n"
        endpoint.log.feed("stdout", b"two\n")
        assert await answer.content.readline() == b"two\n"
        endpoint.log.close()
        assert await answer.content.read() == b""


async def test_a_reader_that_is_gone_is_noticed_while_nothing_is_written(
    endpoint: Endpoint,
) -> None:
    endpoint.log.feed("stdout", b"one\n")
    async with endpoint.session("kubelet-client") as session:
        answer = await session.get("/containerLogs/ns/pod/c", params={"follow": "true"})
        assert await answer.content.readline() == b"one\n"
        assert endpoint.readers == 1
        answer.close()
    await endpoint.until_read_by(0)


@pytest.mark.parametrize(
    ("user", "path", "status"),
    [
        pytest.param("kubelet-client", "/containerLogs/ns/other/c", 400, id="no such log"),
        pytest.param("kubelet-client", "/containerLogs/ns/pod/c?tail=1", 400, id="a strange query"),
        pytest.param("kubelet-client", "/pods", 404, id="nothing else is served"),
        pytest.param("admin", "/containerLogs/ns/pod/c", 403, id="not even to the administrator"),
        pytest.param("this-machine", "/containerLogs/ns/pod/c", 403, id="nor to the node itself"),
    ],
)
async def test_answers(endpoint: Endpoint, user: str, path: str, status: int) -> None:
    async with endpoint.session(user) as session, session.get(path) as answer:
        assert answer.status == status


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        pytest.param(
            "/exec/ns/pod/c?command=ls", "local exec --name dev --namespace ns pod --", id="exec"
        ),
        pytest.param("/attach/ns/pod/c", "kubectl logs --follow --namespace ns pod", id="attach"),
        pytest.param("/portForward/ns/pod", "connect to the pod's address", id="port-forward"),
    ],
)
async def test_what_kubectl_cannot_do_here_is_answered_by_what_to_use_instead(
    endpoint: Endpoint, path: str, remedy: str
) -> None:
    async with (
        endpoint.session("kubelet-client") as session,
        session.post(path) as answer,
    ):
        assert answer.status == 501
        assert remedy in await answer.text()
    async with endpoint.session("admin") as session, session.post(path) as answer:
        assert answer.status == 403
