"""Access lines from HAProxy to rsyslog, counted at both ends: under load, reloads and kills."""

import asyncio
import re
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from tests.http_backend import free_ports
from tests.integration.router.test_proxy import LOOPBACK, get, running, serving
from tests.rsyslog_process import running_sidecar

from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.model import Backend, Config, Endpoint
from quarterdeck.haproxy.render import render
from quarterdeck.router import canary, loss
from quarterdeck.router.access_logging import AccessLogWatch
from quarterdeck.router.canary import Outcome
from quarterdeck.router.certificates import self_signed
from quarterdeck.router.generations import Generations
from quarterdeck.router.loss import Tally
from quarterdeck.router.pod_conditions import PodConditions
from quarterdeck.router.proxy import HAProxy
from quarterdeck.router.settings import Settings
from quarterdeck.testing.waiting import eventually_async

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def soon_late(monkeypatch: pytest.MonkeyPatch) -> float:
    """A shorter time after which a line is late, for tests with a few lines."""
    monkeypatch.setattr(loss, "LATE_AFTER", 1.0)
    return loss.LATE_AFTER


def config(directory: Path, log: AccessLog, port: int) -> Config:
    """A configuration whose requests all get 503, and a line."""
    return Config(
        http_bind=f"{LOOPBACK}:{port}",
        https_bind=f"{LOOPBACK}:{free_ports(1)[0]}",
        sockets=str(directory),
        access_log=log,
        default_certificate=self_signed("default", NOW),
        path_prefixes=(("*/", "ns:web:80"),),
        backends=(Backend("ns:web:80", (None,)),),
    )


@asynccontextmanager
async def logging_router(
    directory: Path,
    form: Literal["stream", "datagram"] = "stream",
    *,
    ignore_empty: bool = False,
    close: bool = True,
) -> AsyncIterator[tuple[HAProxy, AccessLogWatch, int]]:
    """HAProxy with an access log, what watches over it, and the port."""
    log = AccessLog(
        address=str(directory / "rsyslog.sock"),
        socket=form,
        level="info",
        ignore_empty_requests=ignore_empty,
    )
    port = free_ports(1)[0]
    async with running(directory) as proxy:
        await proxy.load(config(directory, log, port))
        await serving(proxy)
        client: Any = None  # without a pod it writes nothing
        logging = AccessLogWatch(log, proxy, PodConditions(client, Settings(), lambda: NOW))
        try:
            yield proxy, logging, port
        finally:
            if close:
                logging.close()


async def arriving(logging: AccessLogWatch) -> None:
    """Wait until a canary comes back."""

    async def look() -> Outcome | None:
        outcome = await logging.look()
        return outcome if outcome.arrives else None

    outcome: Outcome = await eventually_async(look, "a canary comes back")
    assert outcome.reason == "LinesArrive"


CONNECTIONS = 20


class Sent(msgspec.Struct, frozen=True):
    """What a client knows: requests with an answer, and connections that ended without one."""

    answered: int
    cut_off: int

    @property
    def most(self) -> int:
        """The most requests that HAProxy can have had.

        Those in flight at the client's end, one for each connection, got no answer, and perhaps
        the last one of a connection that HAProxy closed. wrk also opens a connection to see whether
        somebody listens, and closes it: an empty request, which has a line.
        """
        return self.answered + CONNECTIONS + 1 + self.cut_off


async def send(port: int, seconds: float, *, reloads: bool = False) -> Sent:
    """Send requests as fast as they go.

    A reload closes idle connections, which wrk calls read errors.
    """
    process = await asyncio.create_subprocess_exec(
        *("wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}", f"http://{LOOPBACK}:{port}/"),
        stdout=asyncio.subprocess.PIPE,
    )
    said = (await process.communicate())[0].decode()
    found = re.search(r"(\d+) requests in", said)
    assert found, said
    errors = re.search(r"Socket errors: connect 0, read (\d+), write 0, timeout 0", said)
    assert "Socket errors" not in said or (reloads and errors), said
    return Sent(int(found[1]), int(errors[1]) if errors else 0)


class GoOn(asyncio.Event):
    """Lets a backend answer; `asked` once it has a request."""

    asked = False


@asynccontextmanager
async def slow_backend(*, begins: bool = False) -> AsyncIterator[tuple[int, GoOn]]:
    """A backend that answers only when it is told to: its port, and what tells it.

    It may begin its answer before.
    """
    go_on = GoOn()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head if begins else b"")
        go_on.asked = True
        await go_on.wait()
        writer.write(b"done" if begins else head + b"done")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, LOOPBACK, 0)
    async with server:
        yield server.sockets[0].getsockname()[1], go_on


async def until_replaced(logging: AccessLogWatch) -> None:
    """Wait until an old worker serves on beside the new one."""

    async def look() -> Tally | None:
        await logging.look()
        return logging.tally if len(logging.tally.workers) > 1 else None

    found: Tally = await eventually_async(look, "two workers")
    assert found.arrived <= found.requests


async def quiet(logging: AccessLogWatch, requests: int = 0) -> Tally:
    """The counts when all connections are closed and each line has arrived or is late.

    HAProxy counts a request a moment after its answer: there are at least so many `requests`.
    """

    async def look() -> Tally | None:
        outcome = await logging.look()
        tally = logging.tally
        still_open = any(one.connections for one in tally.workers.values())
        known = tally.arrived + tally.lost == tally.requests >= requests
        return tally if outcome.arrives and known and not still_open else None

    found: Tally = await eventually_async(look, "all connections are closed, no line is missing")
    return found


async def test_no_line_is_lost_on_the_stream_socket_however_fast(tmp_path: Path) -> None:
    with running_sidecar(tmp_path) as sidecar:
        async with logging_router(tmp_path) as (_, logging, port):
            await arriving(logging)
            answered = 0
            while answered < 50_000:
                answered += (await send(port, 2)).answered
            tally = await quiet(logging, answered)
            assert tally.requests >= answered
            assert (tally.arrived, tally.lost) == (tally.requests, 0)
        assert sum("haproxy[" in line for line in sidecar.lines()) == tally.requests


async def test_a_killed_rsyslog_loses_lines_which_are_counted_and_logging_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary, "RETURN_TIMEOUT", 2.0)
    async with logging_router(tmp_path) as (_, logging, port):
        assert (await logging.look()).reason == "SocketMissing"
        with running_sidecar(tmp_path) as sidecar:
            await arriving(logging)
            sending = asyncio.create_task(send(port, 3))
            await eventually_async(lambda: len(sidecar.lines()) > 1000, "lines")
            sidecar.process.kill()
            sidecar.process.wait()
            assert not (await logging.look()).arrives
        with running_sidecar(tmp_path) as sidecar:
            await sending
            await arriving(logging)
            tally = await quiet(logging)
            # What rsyslog had counted, but not yet told, counts as lost.
            assert tally.requests == tally.arrived + tally.lost
            sent = await send(port, 1)
            after = await quiet(logging, tally.requests + sent.answered)
            assert after.lost == tally.lost
            assert sent.answered <= after.arrived - tally.arrived <= sent.most


async def test_reloads_lose_no_line(tmp_path: Path) -> None:
    with running_sidecar(tmp_path) as sidecar:
        async with logging_router(tmp_path) as (proxy, logging, port):
            await arriving(logging)
            sending = asyncio.create_task(send(port, 3, reloads=True))
            for number in range(3):
                await asyncio.sleep(0.5)
                assert proxy.config is not None
                backends = (Backend("ns:web:80", (None,) * (number + 2)),)
                await proxy.load(msgspec.structs.replace(proxy.config, backends=backends))
                await logging.look()
            sent = await sending
            tally = await quiet(logging, sent.answered)
            # Connections that ended before their first request have lines too.
            empty = sum("<BADREQ>" in line for line in sidecar.lines())
            assert sent.answered <= tally.requests <= sent.most + empty
            lines = sum("haproxy[" in line for line in sidecar.lines())
            assert (lines, tally.arrived, tally.lost) == (tally.requests, tally.requests, 0)


async def test_an_rsyslog_that_hangs_holds_no_reload_up_and_no_line_comes_twice(
    tmp_path: Path,
) -> None:
    with running_sidecar(tmp_path) as sidecar:
        async with logging_router(tmp_path) as (proxy, logging, port):
            await arriving(logging)
            sidecar.process.send_signal(signal.SIGSTOP)
            for number in range(2):
                assert (await get(port, f"/before-{number}"))[0] == 503
                assert proxy.config is not None
                backends = (Backend("ns:web:80", (None,) * (number + 2)),)
                await proxy.load(msgspec.structs.replace(proxy.config, backends=backends))
            sidecar.process.send_signal(signal.SIGCONT)
            assert (await get(port, "/after"))[0] == 503
            tally = await quiet(logging, 3)
            assert (tally.requests, tally.arrived, tally.lost) == (3, 3, 0)
            assert sum("haproxy[" in line for line in sidecar.lines()) == 3


async def test_lines_of_a_router_that_stops_arrive(tmp_path: Path) -> None:
    with running_sidecar(tmp_path) as sidecar:
        async with slow_backend() as (slow, go_on):
            async with logging_router(tmp_path, close=False) as (proxy, logging, port):
                assert proxy.config is not None
                to_backend = (Backend("ns:web:80", (Endpoint(LOOPBACK, slow),)),)
                await proxy.load(msgspec.structs.replace(proxy.config, backends=to_backend))
                await arriving(logging)
                asked = asyncio.create_task(get(port, "/slow"))
                await eventually_async(lambda: go_on.asked, "the request is at the backend")
                asyncio.get_running_loop().call_later(0.5, go_on.set)
            assert (await asked)[0] == 200
        (line,) = [line for line in sidecar.lines() if "haproxy[" in line]
        assert '"GET /slow HTTP/1.1"' in line


async def test_lines_of_a_killed_router_arrive_when_its_successor_replaces_it(
    tmp_path: Path,
) -> None:
    with running_sidecar(tmp_path) as sidecar:
        async with slow_backend() as (slow, go_on):
            log = AccessLog(address=str(tmp_path / "rsyslog.sock"), socket="stream", level="info")
            port = free_ports(1)[0]
            first = msgspec.structs.replace(
                config(tmp_path, log, port),
                backends=(Backend("ns:web:80", (Endpoint(LOOPBACK, slow),)),),
            )
            files = Generations(tmp_path)
            path = files.write(1, render(first, 1))
            files.make_current(1)
            orphan = await asyncio.create_subprocess_exec(
                *("haproxy", "-W", "-S", f"{tmp_path}/master.sock,mode,600", "-f", str(path))
            )
            await eventually_async((tmp_path / "admin-1.sock").exists, "the orphan runs")
            asked = asyncio.create_task(get(port, "/slow"))
            await eventually_async(lambda: go_on.asked, "the request is at the backend")
            listen, talk = await asyncio.open_unix_connection(tmp_path / "admin-1.sock")
            talk.write(b"prompt\n")

            async def stopping() -> str | None:
                talk.write(b"show info\n")
                said = (await listen.readuntil(b"\n\n> ")).decode()
                return said if "Stopping: 1" in said else None

            proxy = HAProxy(tmp_path)
            client: Any = None
            AccessLogWatch(log, proxy, PodConditions(client, Settings(), lambda: NOW))
            task = asyncio.create_task(proxy.run())
            try:
                said: str = await eventually_async(stopping, "the orphan is told to stop")
                assert f"Pid: {orphan.pid}" not in said
                go_on.set()
                assert (await asked)[0] == 200
                talk.close()
                await orphan.wait()
                found = await eventually_async(
                    lambda: [line for line in sidecar.lines() if "GET /slow" in line], "the line"
                )
                assert len(found) == 1
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("begins", [False, True], ids=["no answer yet", "half an answer"])
async def test_a_request_that_outlives_its_worker_has_its_line(
    tmp_path: Path, begins: bool
) -> None:
    with running_sidecar(tmp_path) as sidecar:
        async with (
            slow_backend(begins=begins) as (slow, go_on),
            logging_router(tmp_path) as running,
        ):
            proxy, logging, port = running
            assert proxy.config is not None
            to_backend = (Backend("ns:web:80", (Endpoint(LOOPBACK, slow),)),)
            await proxy.load(msgspec.structs.replace(proxy.config, backends=to_backend))
            await arriving(logging)
            asked = asyncio.create_task(get(port, "/slow"))
            await eventually_async(lambda: go_on.asked, "the request is at the backend")
            more = (Backend("ns:web:80", (Endpoint(LOOPBACK, slow), None)),)
            await proxy.load(msgspec.structs.replace(proxy.config, backends=more))
            await until_replaced(logging)
            go_on.set()
            assert (await asked)[0] == 200
            tally = await quiet(logging, 1)
            assert (tally.requests, tally.arrived, tally.lost) == (1, 1, 0)
            (line,) = [line for line in sidecar.lines() if "haproxy[" in line]
            assert '"GET /slow HTTP/1.1"' in line


@pytest.mark.parametrize("form", ["datagram"])
async def test_the_loss_on_the_datagram_socket_is_counted(
    tmp_path: Path, form: Literal["datagram"]
) -> None:
    with running_sidecar(tmp_path) as sidecar:
        async with logging_router(tmp_path, form) as (_, logging, port):
            await arriving(logging)
            await send(port, 1)
            await arriving(logging)
            tally = await quiet(logging)
            assert tally.arrived == sum("haproxy[" in line for line in sidecar.lines())
            assert tally.lost == tally.requests - tally.arrived


@pytest.mark.parametrize(("ignored", "lines"), [(False, 50), (True, 30)])
async def test_connections_without_a_good_request_are_no_loss(
    tmp_path: Path, ignored: bool, lines: int, soon_late: float
) -> None:
    """Whoever connects and sends nothing, or garbage, cannot make it look as if lines were lost.

    Nor can a failed handshake, which has a line without a request.
    """
    with running_sidecar(tmp_path) as sidecar:
        async with logging_router(tmp_path, ignore_empty=ignored) as (proxy, logging, port):
            await arriving(logging)
            assert proxy.config is not None
            tls = int(proxy.config.https_bind.rpartition(":")[2])
            bad = (port, b"GET / HT"), (port, b"\x00\x01\r\n\r\n"), (tls, b"no handshake")
            for target, sent in ((port, b""), (tls, b""), *bad) * 10:
                _, writer = await asyncio.open_connection(LOOPBACK, target)
                writer.write(sent)
                await writer.drain()
                writer.close()
            await asyncio.sleep(soon_late)
            tally = await quiet(logging, lines)
            assert (tally.requests, tally.arrived, tally.lost) == (lines, lines, 0)
            assert sum("haproxy[" in line for line in sidecar.lines()) == lines


async def test_open_requests_of_one_connection_are_not_lost(
    tmp_path: Path, soon_late: float
) -> None:
    """With HTTP/2, twenty requests wait for the backend on one connection."""
    with running_sidecar(tmp_path):
        async with slow_backend() as (slow, go_on), logging_router(tmp_path) as running:
            proxy, logging, _ = running
            assert proxy.config is not None
            to_backend = (Backend("ns:web:80", (Endpoint(LOOPBACK, slow),)),)
            await proxy.load(msgspec.structs.replace(proxy.config, backends=to_backend))
            await arriving(logging)
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            port = int(proxy.config.https_bind.rpartition(":")[2])
            _, writer = await asyncio.open_connection(LOOPBACK, port, ssl=context)
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
            for number in range(20):
                # GET, https, /, and a host; the end of headers and of the stream.
                writer.write(frame(1, 5, 2 * number + 1, b"\x82\x87\x84\x01\x01a"))
            await writer.drain()

            async def all_open() -> Tally | None:
                await logging.look()
                return logging.tally if logging.tally.requests == 20 else None

            async def all_arrived() -> Tally | None:
                await logging.look()
                return logging.tally if logging.tally.arrived == 20 else None

            found: Tally = await eventually_async(all_open, "twenty requests")
            await asyncio.sleep(soon_late)
            assert (await logging.look()).arrives
            assert (logging.tally.lost, found.arrived) == (0, 0)
            go_on.set()
            found = await eventually_async(all_arrived, "twenty lines")
            writer.close()
            tally = await quiet(logging, 20)
            assert (tally.requests, tally.arrived, tally.lost) == (20, 20, 0)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A frame of HTTP/2."""
    return (
        len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
    )
