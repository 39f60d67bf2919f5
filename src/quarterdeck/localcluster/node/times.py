"""Moments: the time of day for people, the machine's uptime for decisions.

The time of day jumps when somebody or something sets the clock; how long a process may take to
end, or when it is started again, must not jump with it. Times in the API are the time of day, as
RFC 3339 in UTC, to the second.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec


class Instant(msgspec.Struct, frozen=True):
    """One moment on two clocks."""

    wall: datetime
    """The time of day: what is told."""
    boot: float
    """Seconds since the machine was booted, its sleep included: what is decided by."""

    def when_it_was(self, wall: datetime) -> "Instant":
        """The moment of a time of day that was written down, as seen from this one.

        Never in the future: a clock that was set back makes it as late as now.
        """
        return Instant(wall, self.boot - max(0.0, (self.wall - wall).total_seconds()))


Clock = Callable[[], Instant]


def now() -> Instant:
    """What both clocks show."""
    return Instant(datetime.now(UTC), time.clock_gettime(time.CLOCK_BOOTTIME))


def parse_time(text: str) -> datetime:
    """The moment that the API wrote, with or without fractions of a second."""
    return datetime.fromisoformat(text)
