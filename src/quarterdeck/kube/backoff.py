"""How long to wait after a failure: twice as long each time, with jitter. Pure: takes the dice."""

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
