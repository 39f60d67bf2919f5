"""An HTTP server on loopback that answers what a test says: for servers that misbehave."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec

from quarterdeck.kube import Connection

LIMIT = 30.0


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    connection: int
    """Which of the server's connections it came on, counted from 1."""

    @property
    def watch(self) -> bool:
        return self.query.get("watch") == "true"

    @property
    def from_start(self) -> bool:
        """Whether it is a watch that is to begin with all objects."""
        return self.query.get("sendInitialEvents") == "true"


class Hang:
    """Keep the connection open, and say nothing more."""


class Close:
    """Close the connection."""


HANG, CLOSE = Hang(), Close()
Reply = bytes | tuple[bytes | Hang | Close, ...]
Script = Callable[[Asked], Reply]


class ScriptedServer:
    """A server that is running, and what it was asked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.port = 0
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def connection(self) -> Connection:
        return Connection(server=f"http://127.0.0.1:{self.port}", tls=None)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        number = self._connections
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._answer(reader, writer, number):
                pass
        self._tasks.discard(task)
        writer.close()

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
        await reader.readexactly(int(headers.get("content-length", "0")))
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        asked = Asked(method, url.path, query, headers, number)
        self.asked.append(asked)
        reply = self.script(asked)
        for part in (reply,) if isinstance(reply, bytes) else reply:
            match part:
                case bytes():
                    writer.write(part)
                    await writer.drain()
                case Hang():
                    await asyncio.Event().wait()
                case Close():
                    return False
        return True

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def scripted(
    script: Script, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ScriptedServer]:
    """A server that answers each request by the script, while the context lasts."""
    one = ScriptedServer(script)
    server = await asyncio.start_server(one.serve, "127.0.0.1", ssl=tls)
    one.port = server.sockets[0].getsockname()[1]
    try:
        yield one
    finally:
        server.close()
        await one.stop()


def answer(status: int, body: Any = b"", form: str = "application/json", **headers: str) -> bytes:
    """An answer with its length; what is not bytes goes as JSON."""
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {form}\r\nContent-Length: {len(data)}\r\n{more}"
    return head.encode() + b"\r\n" + data


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def stream(*events: bytes, ends: bool = False) -> Reply:
    """A watch with these events; then it is silent, or ends in order."""
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    body = b"".join(chunk(event) for event in events if event)
    return (head + body + b"0\r\n\r\n",) if ends else (head + body, HANG)


def event(kind: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


def config_map(name: str, version: int, **meta: Any) -> dict[str, Any]:
    own = {"name": name, "namespace": "n", "uid": f"u-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**own, **meta}}


def initial(version: int, *objects: dict[str, Any]) -> bytes:
    """What a watch begins with that is to begin with all objects."""
    end = {
        "resourceVersion": str(version),
        "annotations": {"k8s.io/initial-events-end": "true"},
    }
    added = [event("ADDED", obj) for obj in objects]
    return b"".join([*added, event("BOOKMARK", {"metadata": end})])


def listing(version: int | str, *objects: Any, **meta: str) -> bytes:
    """The answer to a list of ConfigMaps."""
    return answer(
        200,
        {
            "apiVersion": "v1",
            "kind": "ConfigMapList",
            "metadata": {"resourceVersion": str(version), **meta},
            "items": objects,
        },
    )
