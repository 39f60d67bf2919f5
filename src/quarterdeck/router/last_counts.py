"""Counts the requests of an old worker until it has ended all of them.

A worker that a reload replaces ends with its last connection, and its counters with it. A command
connection keeps it running. So the router opens one before a reload, asks until no client is
connected any more, and lets go.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from quarterdeck.backoff import Backoff, Retries
from quarterdeck.router.admin import TIMEOUT
from quarterdeck.router.loss import COUNTS, RequestCounts

INTERVALS = Backoff(base=0.2, limit=10.0)
"""Seconds between two questions: an old worker may have clients for half an hour."""
_PROMPT = b"\n> "
_LIMIT = 1 << 22
"""Bytes of an answer: a line for each of thousands of backends."""

Read = Callable[[str], RequestCounts | None]


async def count_until_the_end(
    socket: str, connected: asyncio.Event, read: Read, found: Callable[[int, RequestCounts], None]
) -> None:
    """Tell the counts of the worker at this socket until it is replaced and serves nobody.

    `read` takes them from the answer to `COUNTS`.
    `connected` is set once the connection is open, or cannot be connected.
    """
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        try:
            async with asyncio.timeout(TIMEOUT):
                reader, writer = await asyncio.open_unix_connection(socket, limit=_LIMIT)
        finally:
            connected.set()
        try:
            intervals = Retries(INTERVALS)
            await _asked(reader, writer, "prompt")
            while True:
                info = await _asked(reader, writer, "show info")
                words = dict(line.split(": ", 1) for line in info.splitlines() if ": " in line)
                counts = read(await _asked(reader, writer, COUNTS))
                if counts is not None and words.get("Pid", "").isdigit():
                    found(int(words["Pid"]), counts)
                    if words.get("Stopping") == "1" and not counts.open + counts.connections:
                        return
                await asyncio.sleep(intervals.next())
        finally:
            writer.close()


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, command: str) -> str:
    async with asyncio.timeout(TIMEOUT):
        writer.write(command.encode() + b"\n")
        await writer.drain()
        return (await reader.readuntil(_PROMPT)).decode(errors="replace")
