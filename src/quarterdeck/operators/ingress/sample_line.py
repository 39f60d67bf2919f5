"""A sample access line, by a real HAProxy that serves one made-up request. I/O.

HAProxy runs with the very lines that the router would have. It listens on a socket in a directory
of its own, and nothing of it is reachable from elsewhere.
"""

import asyncio
import re
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.access_log_lines import access_log_lines
from quarterdeck.haproxy.check import bare_environment

TIMEOUT = 10.0
"""Seconds until no line is expected any more."""
_INFO = 6
_HEADER = re.compile(rb"<(\d+)>\w{3} [ \d]\d \d\d:\d\d:\d\d \S+ haproxy\[\d+\]: ")
_VALUES = {
    "host": "shop.example.com",
    "user-agent": "curl/8.5.0",
    "referer": "https://www.example.com/",
    "content-type": "text/plain",
    "location": "/cart",
    "content-length": "6",
}
"""The values of well-known headers in the request and its response."""
_OWN = {"connection", "expect", "te", "trailer", "transfer-encoding", "upgrade"}
"""The headers that say how a message is sent: another value would break it."""


async def sample_line(log: AccessLog, program: str = "haproxy") -> str | None:
    """The line of a request as HAProxy writes it, without syslog's header; None without HAProxy."""
    if shutil.which(program) is None:
        return None
    with tempfile.TemporaryDirectory(prefix="quarterdeck-sample-") as name:
        directory = Path(name)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lines:
            lines.bind(str(directory / "log"))
            lines.setblocking(False)
            async with _backend(log, directory), _haproxy(log, directory, program):
                return await _line(log, directory, lines)


async def _line(log: AccessLog, directory: Path, lines: socket.socket) -> str | None:
    loop = asyncio.get_running_loop()
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await _connected(directory / "in")
            writer.write(_request(log))
            await reader.read()
            writer.close()
            while True:
                header = _HEADER.match(message := await loop.sock_recv(lines, 65536))
                # HAProxy's own notices have the same tag, but another severity.
                if header and int(header[1]) % 8 == _INFO:
                    return message[header.end() :].decode(errors="replace").rstrip("\n")
    return None


async def _connected(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to HAProxy, which makes its socket first and listens on it a moment later."""
    while True:
        try:
            return await asyncio.open_unix_connection(path)
        except (FileNotFoundError, ConnectionRefusedError):
            await asyncio.sleep(0.01)


@asynccontextmanager
async def _haproxy(log: AccessLog, directory: Path, program: str) -> AsyncIterator[None]:
    (directory / "haproxy.cfg").write_text(_config(log, directory))
    process = await asyncio.create_subprocess_exec(
        *(program, "-db", "-f", str(directory / "haproxy.cfg")),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=bare_environment(),
    )
    try:
        yield
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def _backend(log: AccessLog, directory: Path) -> AsyncIterator[None]:
    names = {one.name.lower() for one in log.response_headers} - _OWN
    captured = "".join(f"{name}: {_value(name)}\r\n" for name in sorted(names))
    answer = f"HTTP/1.1 200 OK\r\n{captured}Connection: close\r\n\r\nhello\n".encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, directory / "server")
    try:
        yield
    finally:
        server.close()


def _config(log: AccessLog, directory: Path) -> str:
    # Through a datagram socket: the ring only carries lines to the sidecar.
    here = msgspec.structs.replace(log, address=f"{directory}/log", socket="datagram")
    lines = access_log_lines(here)
    sections = [
        ("global", lines.global_section),
        (
            "defaults",
            ("mode http", *(f"timeout {it} 5s" for it in ("client", "connect", "server"))),
        ),
        ("", lines.defaults),
        ("frontend public", (f"bind unix@{directory}/in accept-proxy", *lines.frontend)),
        ("", ("default_backend shop:web:80",)),
        ("backend shop:web:80", (f"server s0 unix@{directory}/server",)),
    ]
    return "".join(
        (f"{head}\n" if head else "") + "".join(f"    {line}\n" for line in body)
        for head, body in sections
    )


def _request(log: AccessLog) -> bytes:
    """A request with a value for everything that is captured, from a documentation address."""
    names = {"host", "user-agent", *(one.name.lower() for one in log.request_headers)}
    names -= _OWN | {"content-length"}
    headers = "".join(f"{name}: {_value(name)}\r\n" for name in sorted(names))
    cookie = f"cookie: {log.cookie.name.rstrip('=')}=abc123\r\n" if log.cookie else ""
    return (
        "PROXY TCP4 198.51.100.7 192.0.2.1 49152 80\r\n"
        f"GET /cart?item=42 HTTP/1.1\r\n{headers}{cookie}connection: close\r\n\r\n"
    ).encode()


def _value(header: str) -> str:
    return _VALUES.get(header.lower(), f"a-{header.lower()}")
