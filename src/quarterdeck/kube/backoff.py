"""How long to wait after a failure: twice as long each time, with jitter; the dice are given."""

import random
from collections.abc import Callable

import msgspec


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Doubling waits with jitter."""

    base: float = 0.005
    """Seconds after the first failure."""
    limit: float = 300.0
    """The longest wait in seconds, jitter included."""
    jitter: float = 0.25
    """By what part a wait may be shortened, so that keys that failed together come apart."""

    def delay(self, failures: int, dice: Callable[[], float]) -> float:
        """Seconds to wait after this many failures in a row; `dice` gives 0 to 1."""
        # 2.0 ** 1024 overflows; by the 60th failure any limit has been reached.
        whole = min(self.limit, self.base * 2.0 ** min(failures - 1, 60))
        return whole * (1 - self.jitter * dice())


class Retries:
    """The failures in a row of one thing, and the wait after each of them."""

    def __init__(self, backoff: Backoff, dice: Callable[[], float] = random.random) -> None:
        self._backoff = backoff
        self._dice = dice
        self.failures = 0

    def next(self) -> float:
        """The seconds to wait after one more failure."""
        self.failures += 1
        return self._backoff.delay(self.failures, self._dice)

    def reset(self) -> None:
        """Begin with the first wait again: it worked."""
        self.failures = 0
