"""Reads a container's log by a query, and follows it across rotations.

`pod.pods` selects the container and the run; `query` defines the parameters.
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

from quarterdeck.localcluster.node.logs.query import LogQuery
from quarterdeck.localcluster.node.logs.writer import LogWriter, files

BATCH = 500
"""Lines read at a time, each up to 16 kB. Measured: 45 MB of short lines at once took 200 MB."""


class LogLine(NamedTuple):
    """One line of a log file."""

    time: str
    stream: str
    whole: bool
    text: bytes

    @property
    def output(self) -> bytes:
        """The bytes that the process wrote."""
        return self.text + b"\n" if self.whole else self.text


async def read(
    path: Path, query: LogQuery, now: datetime, live: LogWriter | None
) -> AsyncGenerator[bytes, None]:
    """The log's output by the query; with `follow`, until the run ends."""
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
    path: Path, query: LogQuery, now: datetime, live: LogWriter | None
) -> AsyncGenerator[LogLine, None]:
    """The present lines, then the new ones."""
    follower = _Follower(path)
    since = query.start(now)

    def wanted() -> Iterator[LogLine]:
        return (entry for entry in follower.entries() if _wanted(entry, query, since))

    backlog = wanted()
    if query.tail_lines is not None:
        backlog = _last_lines(backlog, query.tail_lines)
    # A log may have 50 MB, so its present lines are read in a thread.
    while batch := await asyncio.to_thread(_some, backlog):
        for entry in batch:
            yield entry
    while query.follow and live is not None:
        # Taken before the read, so that no later change is missed.
        closed, change = live.closed, live.change
        for entry in wanted():
            yield entry
        if closed:
            return
        await change.wait()


def _some(entries: Iterator[LogLine]) -> list[LogLine]:
    return list(islice(entries, BATCH))


def _last_lines(entries: Iterator[LogLine], count: int) -> Iterator[LogLine]:
    """The last lines; a line in several pieces counts once."""
    lines: deque[list[LogLine]] = deque(maxlen=count)
    pieces: list[LogLine] = []
    for entry in entries:
        pieces.append(entry)
        if entry.whole:
            lines.append(pieces)
            pieces = []
    if pieces:
        lines.append(pieces)
    yield from (entry for line in lines for entry in line)


def _wanted(entry: LogLine, query: LogQuery, since: str) -> bool:
    return entry.time >= since and query.stream in ("All", entry.stream.capitalize())


class _Follower:
    """The position of a reader in a log, across rotations."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._inode = 0

    def entries(self) -> Iterator[LogLine]:
        """All lines after the position that exist at the start of the call."""
        with ExitStack() as opened:
            # All files are opened first, because a rotation renames them.
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
        """The files to read, oldest first, beginning with the one that was read last."""
        known = files(self._path)
        for index, path in enumerate(known):
            if path.exists() and path.stat().st_ino == self._inode:
                return known[index:]
        return known


def _parse(line: bytes) -> LogLine | None:
    """The parsed line; None if it is malformed, as after a crash of the machine."""
    parts = line[:-1].split(b" ", 3)
    if len(parts) != 4 or parts[1] not in (b"stdout", b"stderr"):
        return None
    time, stream, tag, text = parts
    return LogLine(time.decode(errors="replace"), stream.decode(), tag == b"F", text)
