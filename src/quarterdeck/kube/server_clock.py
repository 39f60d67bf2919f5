"""The API server's clock: its last answer's, plus the time since on a clock that never jumps."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime


def boot_clock() -> float:
    """Seconds since boot; unlike the monotonic clock it counts a machine's sleep too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class ServerClock:
    """The time of day as the server has it, to the second."""

    def __init__(self, clock: Callable[[], float] = boot_clock) -> None:
        self._clock = clock
        self._date = ""
        self._heard = 0.0

    def hear(self, date: str | None) -> None:
        """Take the Date header of an answer that came just now."""
        # Read only when somebody asks: most processes never do.
        if date:
            self._date, self._heard = date, self._clock()

    def now(self) -> datetime | None:
        """The server's time now; None before its first answer."""
        try:
            said = parsedate_to_datetime(self._date)
        except ValueError:
            return None
        since = timedelta(seconds=self._clock() - self._heard)
        return said.replace(tzinfo=said.tzinfo or UTC) + since
