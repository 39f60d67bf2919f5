"""A container's log, read back as somebody asks for it, and followed across rotations.

Whose log, and of which run, is decided in `pod.pods`; what can be asked for, in `query`.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, aclosing
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from quarterdeck.localcluster.node.logs.query import Query
from quarterdeck.localcluster.node.logs.writer import LogWriter, files

BATCH = 500
"""Entries read at a time, each up to 16 kB: all at once, 45 MB of short lines took 200 MB."""


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

    def wanted() -> Iterator[Entry]:
        return (entry for entry in follower.entries() if _wanted(entry, query, since))

    backlog = wanted()
    if query.tail_lines is not None:
        backlog = _last_lines(backlog, query.tail_lines)
    # A log is up to 50 MB: what is there is read off the event loop.
    while batch := await asyncio.to_thread(_some, backlog):
        for entry in batch:
            yield entry
    while query.follow and live is not None:
        # Both before anything is read: what comes later is then not missed.
        closed, change = live.closed, live.change
        for entry in wanted():
            yield entry
        if closed:
            return
        await change.wait()


def _some(entries: Iterator[Entry]) -> list[Entry]:
    return list(islice(entries, BATCH))


def _last_lines(entries: Iterator[Entry], count: int) -> Iterator[Entry]:
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
    yield from (entry for line in lines for entry in line)


def _wanted(entry: Entry, query: Query, since: str) -> bool:
    return entry.time >= since and query.stream in ("All", entry.stream.capitalize())


class _Follower:
    """A place in a log: what has been read so far, across rotations."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._inode = 0

    def entries(self) -> Iterator[Entry]:
        """Everything after what was read before, as far as it is there when this begins."""
        with ExitStack() as opened:
            # All of them now: a rotation gives their names to others.
            unread = [opened.enter_context(path.open("rb")) for path in self._unread()]
            for file, state in [(file, os.fstat(file.fileno())) for file in unread]:
                if state.st_ino != self._inode:
                    self._inode, self._offset = state.st_ino, 0
                file.seek(self._offset)
                while self._offset < state.st_size:
                    line = file.readline()
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
