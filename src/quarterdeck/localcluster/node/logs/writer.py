"""Writes a container's log to disk, line by line, and rotates it.

The files have the format of the container runtimes: the time, the stream, a tag for a full (F) or
partial (P) line, and the text. `reader` reads them.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from quarterdeck.log import get_logger

log = get_logger("node.logs")

MAX_BYTES = 10_000_000
MAX_FILES = 5
MAX_LINE = 16 * 1024
"""The most bytes of a line; a longer one is split, as container runtimes do."""


def rotated(path: Path, number: int) -> Path:
    """The path of a rotated file; number 1 is the newest."""
    return path.with_name(f"{path.name}.{number}")


def files(path: Path) -> list[Path]:
    """The existing files of the log, oldest first."""
    names = [rotated(path, number) for number in range(MAX_FILES - 1, 0, -1)] + [path]
    return [name for name in names if name.exists()]


Trouble = Callable[[str, str], None]
"""Called when output is lost, and when that ends: a reason in one word, and a note."""


def _ignore(reason: str, note: str) -> None:
    """Do nothing; the agent's own log has it."""


class LogWriter:
    """Writes the log of one run, and wakes its followers at new lines.

    A full disk does not stop the process: its output is lost, and `trouble` is called when the loss
    begins and ends.
    """

    def __init__(
        self, path: Path, *, max_bytes: int = MAX_BYTES, trouble: Trouble = _ignore
    ) -> None:
        self.path = path
        self._trouble = trouble
        self.closed = False
        self._max_bytes = max_bytes
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = _open(path)
        self._size = path.stat().st_size
        self._rest: dict[str, bytes] = {"stdout": b"", "stderr": b""}
        self.change = asyncio.Event()
        """Set by the next line and by the close of the log, and then replaced by a new event."""
        self._lost = 0

    def feed(self, stream: str, chunk: bytes, now: datetime | None = None) -> None:
        """Write output of the process; an incomplete line waits for its end."""
        *lines, rest = (self._rest[stream] + chunk).split(b"\n")
        time = _stamp(now)
        out = [piece for line in lines for piece in _pieces(time, stream, line)]
        while len(rest) > MAX_LINE:
            out.append(_line(time, stream, b"P", rest[:MAX_LINE]))
            rest = rest[MAX_LINE:]
        self._rest[stream] = rest
        self._write(b"".join(out))

    def close(self, now: datetime | None = None) -> None:
        """Write the incomplete lines, and end the followers."""
        time = _stamp(now)
        left = [_line(time, stream, b"F", rest) for stream, rest in self._rest.items() if rest]
        self._rest = dict.fromkeys(self._rest, b"")
        self._write(b"".join(left))
        self.closed = True
        os.close(self._file)
        self._notify()

    def _write(self, data: bytes) -> None:
        if not data:
            return
        try:
            if self._size and self._size + len(data) > self._max_bytes:
                self._rotate()
            self._append(data)
        except OSError as error:
            if not self._lost:
                log.warning("log lines lost", path=str(self.path), error=str(error))
                note = f"its output is lost until there is room: {error.strerror or error}"
                self._trouble("LogsLost", note)
            self._lost += len(data)
            return
        if self._lost:
            log.info("log goes on", path=str(self.path), lost=self._lost)
            self._trouble("LogsResumed", f"its output is kept again; {self._lost} bytes were lost")
            self._lost = 0
        self._notify()

    def _append(self, data: bytes) -> None:
        """Write all data or nothing: half a line would corrupt the next one too."""
        written = os.write(self._file, data)
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError:
            os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def _rotate(self) -> None:
        # The step that may fail on a full disk comes first; then the older files stay unchanged.
        beside = self.path.with_name(f"{self.path.name}.new")
        fresh = _open(beside)
        for number in range(MAX_FILES - 1, 0, -1):
            older = rotated(self.path, number)
            younger = rotated(self.path, number - 1) if number > 1 else self.path
            if younger.exists():
                younger.rename(older)
        beside.rename(self.path)
        os.close(self._file)
        self._file, self._size = fresh, 0

    def _notify(self) -> None:
        self.change.set()
        self.change = asyncio.Event()


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
