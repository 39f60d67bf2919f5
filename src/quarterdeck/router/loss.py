"""Counts access lines from both ends: what HAProxy wrote, and what arrived at rsyslog. Pure.

HAProxy counts the requests of each worker and frontend, and each request has one line at its end.
rsyslog counts lines, and says the count with each canary, which keeps its place among them. A
request that had ended when HAProxy was asked, just before the canary, must be among the lines.
"""

import csv
import io
from collections.abc import Mapping

import msgspec

PUBLIC = ("public", "public_ssl")
"""The frontends whose requests have access lines."""


class Requests(msgspec.Struct, frozen=True):
    """The requests of a worker's public frontends, and how many of them may not have ended."""

    begun: int = 0
    open: int = 0


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Requests and lines so far, over all workers and all processes of rsyslog."""

    workers: Mapping[int, Requests] = {}
    """By process id, as they were asked last."""
    ended: int = 0
    """The requests of workers that have ended."""
    lines_before: int | None = None
    """What is added to rsyslog's count; None before its first canary."""
    lines: int = 0
    """rsyslog's own count, since its start."""
    started: str = ""
    """The start of rsyslog, as it says it."""
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

    def asked(self, now: Mapping[int, Requests]) -> "Tally":
        """After the workers were asked: those that are missing have ended."""
        gone = sum(one.begun for pid, one in self.workers.items() if pid not in now)
        return msgspec.structs.replace(self, workers=dict(now), ended=self.ended + gone)

    def heard(self, lines: int, started: str) -> "Tally":
        """After a canary came back, which was sent after the workers were asked."""
        if self.lines_before is None:
            # Lines of before this router's start are nobody's loss.
            return msgspec.structs.replace(
                self, lines_before=self.requests - lines, lines=lines, started=started
            )
        before = self.lines_before if started == self.started else self.arrived
        new = msgspec.structs.replace(self, lines_before=before, lines=lines, started=started)
        still_open = sum(one.open for one in self.workers.values())
        missing = new.requests - still_open - new.arrived
        return msgspec.structs.replace(new, lost=max(self.lost, missing))

    def settled(self) -> "Tally":
        """With the requests that no worker was asked about any more, but whose lines arrived."""
        unknown = self.arrived + self.lost - self.requests
        if self.lines_before is None or unknown <= 0:
            return self
        return msgspec.structs.replace(self, ended=self.ended + unknown)


def requests_in(statistics: str) -> Requests:
    """The requests of the public frontends, in the output of `show stat`."""
    begun = still_open = 0
    for row in csv.DictReader(io.StringIO(statistics.lstrip("# \n"))):
        if row.get("pxname") in PUBLIC and row.get("svname") == "FRONTEND":
            begun += int(row.get("req_tot") or 0)
            still_open += int(row.get("scur") or 0)
    return Requests(begun, still_open)


def workers_in(processes: str) -> tuple[int, ...]:
    """The process ids of all workers, old ones too, in the output of `show proc`."""
    words = [line.split() for line in processes.splitlines() if not line.startswith("#")]
    return tuple(int(it[0]) for it in words if len(it) > 1 and it[1] == "worker")
