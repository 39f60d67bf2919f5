"""Counts access lines from both ends: what HAProxy wrote, and what arrived at rsyslog. Pure.

HAProxy counts the requests of each worker and frontend, and each request has one line at its end.
So has a failed TLS handshake, which HAProxy counts apart. rsyslog counts lines, and says the count
with each canary, which keeps its place among the lines of its own worker. A request that had ended
when HAProxy was asked, just before the canary, must be among the lines. A canary can overtake lines
of an older worker, which come by another connection: so a line is lost only if it is still missing
at a canary `LATE_AFTER` seconds later.
"""

from collections.abc import Collection, Mapping

import msgspec

PUBLIC = ("public", "public_ssl")
"""The frontends whose requests have access lines."""


COUNTS = "show stat -1 1 -1"
"""The command for the counts of all frontends."""
_OPEN_STREAMS = ("h1_open_streams", "h2_backend_open_streams")
"""The requests that have not ended, by protocol; the second name is HAProxy's, for clients too."""
LATE_AFTER = 3.0
"""Seconds after which a missing line is lost."""


class RequestCounts(msgspec.Struct, frozen=True):
    """The requests of a worker's public frontends: those that began, and those not at their end."""

    begun: int = 0
    open: int = 0
    connections: int = 0
    """The connections of clients, idle ones too."""


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Requests and lines so far, over all workers and all processes of rsyslog."""

    workers: Mapping[int, RequestCounts] = {}
    """By process id, as they were asked last."""
    ended: int = 0
    """The requests of workers that have ended."""
    lines_before: int | None = None
    """What is added to rsyslog's count; None before its first canary."""
    lines: int = 0
    """rsyslog's own count, since its start."""
    started: str = ""
    """The start of rsyslog, as it says it."""
    due: tuple[tuple[float, int], ...] = ()
    """How many lines have to arrive, and when that was known; those that are not late yet."""
    lost: int = 0
    """Lines that are known to be lost. It never falls."""

    @property
    def requests(self) -> int:
        """All requests that are known."""
        return self.ended + sum(one.begun for one in self.workers.values())

    @property
    def arrived(self) -> int:
        """All lines that are known to have arrived."""
        return (self.lines_before or 0) + self.lines

    @property
    def complete(self) -> bool:
        """Whether each line that is due has arrived, or is known to be lost."""
        return all(count <= self.arrived + self.lost for _, count in self.due)

    def asked(self, answers: Mapping[int, RequestCounts], running: Collection[int]) -> "Tally":
        """After the workers that run were asked; one that gave no answer keeps its count."""
        gone = sum(one.begun for pid, one in self.workers.items() if pid not in running)
        kept = {pid: one for pid, one in self.workers.items() if pid in running}
        return msgspec.structs.replace(self, workers={**kept, **answers}, ended=self.ended + gone)

    def heard(self, lines: int, started: str, now: float, held: int = 0) -> "Tally":
        """After a canary came back, which was sent after the workers were asked.

        As many lines as `held` are known, and have still to be sent.
        """
        if self.lines_before is None:
            # Lines of before this router's start are nobody's loss.
            return msgspec.structs.replace(
                self, lines_before=self.requests - lines, lines=lines, started=started
            )
        before = self.lines_before if started == self.started else self.arrived
        new = msgspec.structs.replace(self, lines_before=before, lines=lines, started=started)
        still_open = sum(one.open for one in self.workers.values())
        due = (*self.due, (now, new.requests - still_open - held))
        late = [count - new.arrived for at, count in due if at <= now - LATE_AFTER]
        return msgspec.structs.replace(new, due=due[len(late) :], lost=max(self.lost, *late, 0))

    def settled(self) -> "Tally":
        """With the requests that no worker was asked about any more, but whose lines arrived.

        It is called only when each worker that runs gave an answer after the canary: the lines of
        one that did not would be taken for those of a worker that has ended.
        """
        unknown = self.arrived + self.lost - self.requests
        if self.lines_before is None or unknown <= 0:
            return self
        return msgspec.structs.replace(self, ended=self.ended + unknown)


def requests_in(statistics: str, *, without_empty: bool = False) -> RequestCounts | None:
    """The requests of the public frontends, in the answer to `COUNTS`; None if it has none.

    Without empty ones, only those count that are no errors of a client: HAProxy counts a connection
    without a request as such an error, and writes no line of it if told so. Of failed handshakes it
    writes a line only if the client sent something, so they do not count then.
    """
    found: RequestCounts | None = None
    columns: list[str] = []
    for line in statistics.splitlines():
        # No text with commas comes before the columns that count.
        cells = line.lstrip("# ").split(",")
        if not columns:
            columns = cells if cells[0] == "pxname" else []
            continue
        if cells[0] not in PUBLIC:
            continue
        row = {
            name: int(cell) for name, cell in zip(columns, cells, strict=False) if cell.isdigit()
        }
        begun = row.get("req_tot", 0)
        begun += -row.get("ereq", 0) if without_empty else row.get("ssl_failed_handshake", 0)
        before = found or RequestCounts()
        found = RequestCounts(
            before.begun + begun,
            before.open + sum(row.get(name, 0) for name in _OPEN_STREAMS),
            before.connections + row.get("scur", 0),
        )
    return found


def workers_in(processes: str) -> tuple[int, ...]:
    """The process ids of all workers, old ones too, in the output of `show proc`."""
    words = [line.split() for line in processes.splitlines() if not line.startswith("#")]
    return tuple(int(it[0]) for it in words if len(it) > 1 and it[1] == "worker")
