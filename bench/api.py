"""Plain requests to an API server, with nothing in between: no cache, no retries, no types.

Who drives a measurement, who observes it, and the bare client that operators are compared with
all speak through this; it must stay as cheap as Python can be.
"""

import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import aiohttp
import msgspec

from bench.widgets import FIELD_MANAGER

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Object = dict[str, Any]


class RequestFailed(Exception):  # noqa: N818 - it says what happened, as its siblings do
    """The server refused a request that the benchmark needs."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where an API server is, and the files that open it."""

    url: str
    authority: Path
    certificate: Path
    key: Path


class Api:
    """A connection pool to one API server."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, address: Address) -> AsyncIterator[Self]:
        """The pool, open for the block; its size is the caller's concurrency."""
        trust = ssl.create_default_context(cafile=address.authority)
        trust.load_cert_chain(address.certificate, address.key)
        async with aiohttp.ClientSession(
            base_url=address.url,
            connector=aiohttp.TCPConnector(ssl=trust, limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            headers={"Accept": "application/json"},
        ) as session:
            yield cls(session)

    async def create(self, collection: str, body: Object) -> Object:
        """The object as created."""
        return await self._write("POST", collection, body, "application/json")

    async def patch(self, path: str, body: Object) -> Object:
        """The object after a merge patch."""
        return await self._write("PATCH", path, body, MERGE_PATCH)

    async def apply(self, path: str, body: Object) -> Object:
        """The object after a server-side apply that wins against others."""
        return await self._write("PATCH", path, body, APPLY_PATCH, {"force": "true"})

    async def text(self, path: str) -> str:
        """What a path answers, as text."""
        async with self._session.get(path, headers={"Accept": "text/plain"}) as response:
            return await response.text()

    async def get(self, path: str) -> Object:
        """What a path answers, as an object."""
        async with self._session.get(path) as response:
            return _answer("GET", path, response.status, await response.read())

    async def lines(self, collection: str, version: str) -> AsyncIterator[list[bytes]]:
        """The lines of a watch from this version on, as many at a time as came together."""
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "3600"}
        async with self._session.get(collection, params=query) as response:
            rest = b""
            async for data in response.content.iter_any():
                *lines, rest = (rest + data).split(b"\n")
                if lines:
                    yield lines

    async def _write(
        self,
        method: str,
        path: str,
        body: Object,
        form: str,
        query: dict[str, str] | None = None,
    ) -> Object:
        async with self._session.request(
            method,
            path,
            params={"fieldManager": FIELD_MANAGER} | (query or {}),
            data=msgspec.json.encode(body),
            headers={"Content-Type": form},
        ) as response:
            return _answer(method, path, response.status, await response.read())


def _answer(method: str, path: str, status: int, body: bytes) -> Object:
    if status >= 400:
        raise RequestFailed(f"{method} {path}: {status} {body[:300].decode(errors='replace')}")
    answer: Object = msgspec.json.decode(body)
    return answer
