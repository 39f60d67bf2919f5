"""The access lines of a worker that is being replaced, as its ring has them. Pure.

A worker that is told to stop closes the connection of its ring at once. So lines that are in the
ring then, and those of requests that end later, have to be read from the ring by a command. Before
the stop, the same lines also go to rsyslog: it has counted how many of them came.
"""

import re

from quarterdeck.haproxy.sidecar import CANARY_TAG

_HEAD = re.compile(
    rb"<(?P<priority>\d{1,3})>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d "
    rb"(?P<host>\S+) (?P<tag>[\w-]+)\[(?P<pid>\d+)\]: "
)
_STOPPED = b"Proxy public stopped "
_WARNING, _INFO = 4, 6
LATE = b"<150>"
"""Facility local2 and severity info: rsyslog counts these lines apart from those of a ring."""
MOST_BYTES = 64 * 1024 * 1024
"""Of lines that are kept: more than two seconds at full speed."""


class LastLines:
    """Lines since a canary, in their order, of which the first ones have arrived."""

    def __init__(self) -> None:
        self._partial = b""
        self._lines: list[bytes] = []
        self._bytes = 0
        self._canary = b""
        self._source: tuple[bytes, bytes] | None = None
        self._stopped_at: int | None = None
        self.has_canary = False
        """Whether the canary was seen: the lines are exactly those after it."""

    @property
    def stopped(self) -> bool:
        """Whether the worker was told to stop."""
        return self._stopped_at is not None

    @property
    def held(self) -> int:
        """How many lines are kept."""
        return len(self._lines)

    @property
    def too_many(self) -> bool:
        """Whether more is kept than a reload needs."""
        return self._bytes > MOST_BYTES

    def begin_at(self, canary: str) -> None:
        """Forget all lines up to this canary, once it comes."""
        self._canary, self.has_canary = canary.encode(), False

    def feed(self, received: bytes) -> None:
        """Take what the worker said, up to any byte."""
        *messages, self._partial = (self._partial + received).split(b"\n")
        for message in messages:
            self._take(message)

    def undelivered(self, delivered: int | None) -> list[bytes]:
        """Give away the lines without the first ones, which have arrived.

        None means that nobody knows how many: then only those after the stop are sure not to have.
        """
        first = delivered if delivered is not None else (self._stopped_at or 0)
        lines, self._lines, self._bytes = self._lines[first:], [], 0
        return lines

    def _take(self, message: bytes) -> None:
        match = _HEAD.match(message)
        if match is None or not self._is_of_worker(match):
            # A format can decode a line break; rsyslog writes it like this.
            if self._lines and message:
                self._lines[-1] += b"#012" + message
            return
        severity, text = int(match["priority"]) % 8, message[match.end() :]
        if match["tag"] == CANARY_TAG.encode():
            if self._canary and text.strip() == self._canary:
                self._lines, self._bytes, self.has_canary = [], 0, True
                self._stopped_at = 0 if self.stopped else None
        elif severity == _INFO:
            line = LATE + message[match.end("priority") + 1 :]
            self._lines.append(line)
            self._bytes += len(line)
        elif severity == _WARNING and text.startswith(_STOPPED) and not self.stopped:
            self._stopped_at = len(self._lines)

    def _is_of_worker(self, head: re.Match[bytes]) -> bool:
        """Whether the worker wrote this head: behind a decoded line break it can be a client's.

        The first head is the worker's, and a client does not know its host and process.
        """
        source = head["host"], head["pid"]
        if self._source is None:
            self._source = source
        return source == self._source


def framed(lines: list[bytes]) -> bytes:
    """The lines with their lengths before them, as rsyslog expects them from a stream."""
    return b"".join(b"%d %s" % (len(line), line) for line in lines)
