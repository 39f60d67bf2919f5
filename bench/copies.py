"""Copies Widgets and their ConfigMaps in etcd, because 300,000 requests would take ten minutes.

The API server learns of the copies by its own watch of etcd, and serves them as all others.
"""

import base64
import contextlib
import re
import ssl
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any, Self

import aiohttp
import msgspec

from bench import widgets
from bench.api import Address

BATCH = 100
"""Writes in one transaction; etcd takes up to 128."""

_UID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Pair = tuple[bytes, bytes]
"""A Widget and its ConfigMap, as they are stored."""


class Etcd:
    """An etcd, through its own JSON gateway."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, address: Address) -> AsyncIterator[Self]:
        """A connection for the block."""
        trust = ssl.create_default_context(cafile=address.authority)
        trust.load_cert_chain(address.certificate, address.key)
        connector = aiohttp.TCPConnector(ssl=trust)
        async with aiohttp.ClientSession(address.url, connector=connector) as session:
            yield cls(session)

    async def get(self, key: str) -> bytes:
        """The value of a key."""
        answer = await self._ask("/v3/kv/range", {"key": _packed(key.encode())})
        return base64.b64decode(answer["kvs"][0]["value"])

    async def put(self, values: Sequence[tuple[str, bytes]]) -> None:
        """Write some values in one transaction."""
        puts = [
            {"requestPut": {"key": _packed(key.encode()), "value": _packed(value)}}
            for key, value in values
        ]
        await self._ask("/v3/kv/txn", {"success": puts})

    async def _ask(self, path: str, body: Any) -> Any:
        async with self._session.post(path, data=msgspec.json.encode(body)) as response:
            response.raise_for_status()
            return msgspec.json.decode(await response.read())


async def copy(etcd: Etcd, made: range, wanted: range) -> None:
    """Make the wanted objects from those that are there, in turn."""
    pairs = [await _pair(etcd, index) for index in made]
    waiting: list[tuple[str, bytes]] = []
    for index in wanted:
        source = index % len(made)
        waiting += zip(_keys(index), copied(pairs[source], made[source], index), strict=True)
        if len(waiting) >= BATCH:
            await etcd.put(waiting)
            waiting.clear()
    if waiting:
        await etcd.put(waiting)


def copied(pair: Pair, source: int, target: int) -> Pair:
    """A Widget and its ConfigMap under another number, with uids of their own.

    Nothing changes its length, so this holds for Protobuf too, in which ConfigMaps are stored.
    """
    widget, config_map = pair
    own = msgspec.json.decode(widget)["metadata"]["uid"].encode()
    uids = {uid: str(uuid.uuid4()).encode() for uid in {own, *_UID.findall(config_map)}}
    was, now = f"{source:05d}".encode(), f"{target:05d}".encode()

    def renamed(value: bytes) -> bytes:
        value = re.sub(rb"\b(widget-|widget |number )" + was, rb"\g<1>" + now, value)
        return _UID.sub(lambda found: uids.get(found[0], found[0]), value)

    return renamed(widget), renamed(config_map)


async def _pair(etcd: Etcd, index: int) -> Pair:
    widget, config_map = _keys(index)
    return await etcd.get(widget), await etcd.get(config_map)


def _keys(index: int) -> tuple[str, str]:
    name = f"{widgets.NAMESPACE}/{widgets.name_of(index)}"
    kind = f"{widgets.GROUP}/{widgets.PLURAL}"
    return f"/registry/{kind}/{name}", f"/registry/configmaps/{name}"


def _packed(value: bytes) -> str:
    return base64.b64encode(value).decode()
