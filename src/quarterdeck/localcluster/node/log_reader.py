"""A container's log, read back as somebody asks for it, and followed across rotations.

Whose log, and of which run, is decided in `pods`; what can be asked for, in `log_query`.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from quarterdeck.localcluster.node.log_query import Query
from quarterdeck.localcluster.node.logs import LogWriter, files


class Entry(NamedTuple):
    """One line of a log file."""

    time: str
    stream: str
    whole: bool
    text: bytes

    @property
    def output(self) -> bytes:
        """What the process wrote."""
        return self.text + b"\n" if self.whole else self.text


async def read(
    path: Path, query: Query, now: datetime, live: LogWriter | None
) -> AsyncGenerator[bytes, None]:
    """The log's output as the query wants it; with `follow`, until the run ends."""
    left = query.limit_bytes
    async with aclosing(_entries(path, query, now, live)) as entries:
        async for entry in entries:
            output = entry.output
            if query.timestamps:
                output = entry.time.encode() + b" " + output
            if left is not None:
                output = output[:left]
                left -= len(output)
            yield output
            if left == 0:
                return


async def _entries(
    path: Path, query: Query, now: datetime, live: LogWriter | None
) -> AsyncGenerator[Entry, None]:
    """The entries that are there, then the ones to come."""
    follower = _Follower(path)
    since = query.start(now)
    # A log is up to 50 MB: what is there is read off the event loop.
    for entry in await asyncio.to_thread(_backlog, follower, query, since):
        yield entry
    while query.follow and live is not None:
        closed = live.closed
        change = asyncio.ensure_future(live.changed())
        try:
            for entry in follower.entries():
                if _wanted(entry, query, since):
                    yield entry
            if closed:
                return
            if not live.closed:
                await change
        finally:
            change.cancel()


def _backlog(follower: "_Follower", query: Query, since: str) -> list[Entry]:
    wanted = (entry for entry in follower.entries() if _wanted(entry, query, since))
    if query.tail_lines is None:
        return list(wanted)
    return _last_lines(wanted, query.tail_lines)


def _last_lines(entries: Iterator[Entry], count: int) -> list[Entry]:
    """The last lines; one that was written in pieces counts once."""
    lines: deque[list[Entry]] = deque(maxlen=count)
    pieces: list[Entry] = []
    for entry in entries:
        pieces.append(entry)
        if entry.whole:
            lines.append(pieces)
            pieces = []
    if pieces:
        lines.append(pieces)
    return [entry for line in lines for entry in line]


def _wanted(entry: Entry, query: Query, since: str) -> bool:
    return entry.time >= since and query.stream in ("All", entry.stream.capitalize())


class _Follower:
    """A place in a log: what has been read so far, across rotations."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._inode = 0

    def entries(self) -> Iterator[Entry]:
        """Everything after what was read before."""
        for path in self._unread():
            with path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode != self._inode:
                    self._inode, self._offset = inode, 0
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._offset += len(line)
                    if (entry := _parse(line)) is not None:
                        yield entry

    def _unread(self) -> list[Path]:
        """The files to read, oldest first: from the one that was read last on."""
        known = files(self._path)
        for index, path in enumerate(known):
            if path.exists() and path.stat().st_ino == self._inode:
                return known[index:]
        return known


def _parse(line: bytes) -> Entry | None:
    """The entry of a line; None for one that was spoilt, by a machine that crashed, say."""
    parts = line[:-1].split(b" ", 3)
    if len(parts) != 4 or parts[1] not in (b"stdout", b"stderr"):
        return None
    time, stream, tag, text = parts
    return Entry(time.decode(errors="replace"), stream.decode(), tag == b"F", text)
