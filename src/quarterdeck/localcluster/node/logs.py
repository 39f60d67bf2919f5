"""A container's log on disk: written line by line, rotated, read and followed.

The files are in the format of the container runtimes: a time, the stream, whether the line is
whole (F) or goes on (P), and the text. Which run's log is wanted is decided in `server`.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from quarterdeck.localcluster.node.log_query import Query
from quarterdeck.log import get_logger

log = get_logger("node.logs")

MAX_BYTES = 10_000_000
MAX_FILES = 5
MAX_LINE = 16 * 1024
"""A longer line is cut into pieces, as container runtimes do."""


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


def rotated(path: Path, number: int) -> Path:
    """The name of an older file; number 1 is the youngest of them."""
    return path.with_name(f"{path.name}.{number}")


def files(path: Path) -> list[Path]:
    """The log's files that there are, oldest first."""
    names = [rotated(path, number) for number in range(MAX_FILES - 1, 0, -1)] + [path]
    return [name for name in names if name.exists()]


class LogWriter:
    """The log of one run while it runs; everybody who follows it is told of new lines."""

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self.closed = False
        self._max_bytes = max_bytes
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _open(path)
        self._size = path.stat().st_size
        self._rest: dict[str, bytes] = {"stdout": b"", "stderr": b""}
        self._changed = asyncio.Event()
        self._failing = False

    def feed(self, stream: str, chunk: bytes, now: datetime | None = None) -> None:
        """Write what came from the process; an unfinished line waits for its end."""
        *lines, rest = (self._rest[stream] + chunk).split(b"\n")
        time = _stamp(now)
        out = [piece for line in lines for piece in _pieces(time, stream, line)]
        while len(rest) > MAX_LINE:
            out.append(_line(time, stream, b"P", rest[:MAX_LINE]))
            rest = rest[MAX_LINE:]
        self._rest[stream] = rest
        self._write(b"".join(out))

    def close(self, now: datetime | None = None) -> None:
        """Write what is left of unfinished lines, and let followers end."""
        time = _stamp(now)
        left = [_line(time, stream, b"F", rest) for stream, rest in self._rest.items() if rest]
        self._rest = dict.fromkeys(self._rest, b"")
        self._write(b"".join(left))
        self.closed = True
        os.close(self._file)
        self._notify()

    async def changed(self) -> None:
        """Return after the next line, or when the log is closed."""
        event = self._changed
        await event.wait()

    def _write(self, data: bytes) -> None:
        if not data:
            return
        try:
            if self._size and self._size + len(data) > self._max_bytes:
                self._rotate()
            os.write(self._file, data)
            self._size += len(data)
            self._failing = False
        except OSError as error:
            # A full disk must not stop the process; its output is lost, and that is said once.
            if not self._failing:
                log.warning("log lines lost", path=str(self.path), error=str(error))
            self._failing = True
        self._notify()

    def _rotate(self) -> None:
        for number in range(MAX_FILES - 1, 0, -1):
            older = rotated(self.path, number)
            younger = rotated(self.path, number - 1) if number > 1 else self.path
            if younger.exists():
                younger.rename(older)
        fresh = _open(self.path)
        os.close(self._file)
        self._file, self._size = fresh, 0

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


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
                    yield _parse(line)

    def _unread(self) -> list[Path]:
        """The files to read, oldest first: from the one that was read last on."""
        known = files(self._path)
        for index, path in enumerate(known):
            if path.exists() and path.stat().st_ino == self._inode:
                return known[index:]
        return known


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _pieces(time: bytes, stream: str, line: bytes) -> Iterator[bytes]:
    while len(line) > MAX_LINE:
        yield _line(time, stream, b"P", line[:MAX_LINE])
        line = line[MAX_LINE:]
    yield _line(time, stream, b"F", line)


def _line(time: bytes, stream: str, tag: bytes, text: bytes) -> bytes:
    return b"%s %s %s %s\n" % (time, stream.encode(), tag, text)


def _stamp(now: datetime | None) -> bytes:
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()


def _parse(line: bytes) -> Entry:
    time, stream, tag, text = line[:-1].split(b" ", 3)
    return Entry(time.decode(), stream.decode(), tag == b"F", text)
