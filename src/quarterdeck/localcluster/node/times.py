"""Moments on two clocks: the time of day for people, the time since boot for decisions.

The time of day jumps when the clock is set; grace periods and restarts must not jump with it. Times
in the API are the time of day, as RFC 3339 in UTC, in whole seconds.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec


class Instant(msgspec.Struct, frozen=True):
    """One moment on two clocks."""

    wall: datetime
    """The time of day, for reports."""
    boot: float
    """Seconds since boot, with sleep of the machine, for decisions."""

    def at_wall_time(self, wall: datetime) -> "Instant":
        """The moment of an earlier time of day, relative to this one.

        It is never in the future: after a clock was set back, it is this moment.
        """
        return Instant(wall, self.boot - max(0.0, (self.wall - wall).total_seconds()))


Clock = Callable[[], Instant]


def now() -> Instant:
    """The present moment."""
    return Instant(datetime.now(UTC), time.clock_gettime(time.CLOCK_BOOTTIME))


def parse_time(text: str) -> datetime:
    """The time in an API field, with or without fractions of a second."""
    return datetime.fromisoformat(text)
