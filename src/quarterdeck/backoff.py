"""How long to wait after a failure: twice as long each time. Pure: takes the dice.

Everything that retries or restarts takes its delays from here: requests, watches, the work queue,
the components of a local cluster, the containers of its node. It imports nothing of the project, so
that what must stay small can use it too.
"""

import random
from collections.abc import Callable

import msgspec


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Delays that double, with jitter."""

    base: float = 0.005
    """Seconds after the first failure."""
    limit: float = 300.0
    """The longest delay in seconds, jitter included."""
    jitter: float = 0.25
    """The fraction by which a delay may be shortened, so that retries spread over time."""

    def delay(self, failures: int, dice: Callable[[], float]) -> float:
        """Seconds to wait after this many failures in a row; `dice` returns 0 to 1."""
        # 2.0 ** 1024 overflows; by the 60th failure any limit has been reached.
        whole = min(self.limit, self.base * 2.0 ** min(failures - 1, 60))
        return whole * (1 - self.jitter * dice())


class RestartBackoff(msgspec.Struct, frozen=True, kw_only=True):
    """The back-off of something that should run and has ended: a long run resets it.

    It has no jitter: its delay is shown to the user.
    """

    first: float
    """Seconds before the first restart that is delayed."""
    maximum: float
    """The longest delay in seconds."""
    reset: float
    """A run of at least this many seconds resets the back-off."""
    at_once: int = 0
    """How many restarts in a row have no delay."""

    def crashes(self, before: int, lasted: float) -> int:
        """The crashes in a row after a run of this length, with those before it."""
        return 1 if lasted >= self.reset else before + 1

    def delay(self, crashes: int) -> float:
        """Seconds to wait after this many crashes in a row."""
        if crashes <= self.at_once:
            return 0.0
        doubling = Backoff(base=self.first, limit=self.maximum, jitter=0.0)
        return doubling.delay(crashes - self.at_once, lambda: 0.0)


class Retries:
    """Counts failures in a row, and gives the delay after each."""

    def __init__(self, backoff: Backoff, dice: Callable[[], float] = random.random) -> None:
        self._backoff = backoff
        self._dice = dice
        self.failures = 0

    def next(self) -> float:
        """Count one more failure; return the seconds to wait."""
        self.failures += 1
        return self._backoff.delay(self.failures, self._dice)

    def reset(self) -> None:
        """Start with the first delay again, after a success."""
        self.failures = 0
