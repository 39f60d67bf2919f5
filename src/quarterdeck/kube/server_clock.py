"""The API server's time: that of its last answer, plus the time since on a monotonic clock."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime


def boot_clock() -> float:
    """Seconds since boot; unlike `time.monotonic` it counts while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ServerClock:
    """The server's time of day, in whole seconds."""

    def __init__(self, clock: Callable[[], float] = boot_clock) -> None:
        self._clock = clock
        self._date = ""
        self._updated_at = 0.0

    def update(self, date: str | None) -> None:
        """Store the Date header of an answer that has just arrived."""
        # Parsed only in `now`: most processes never call it.
        if date:
            self._date, self._updated_at = date, self._clock()

    def now(self) -> datetime | None:
        """The server's time now; None before its first answer."""
        try:
            date = parsedate_to_datetime(self._date)
            since = timedelta(seconds=self._clock() - self._updated_at)
            return date.replace(tzinfo=date.tzinfo or UTC) + since
        except (ValueError, OverflowError):  # not a date, or one that Python cannot represent
            return None
