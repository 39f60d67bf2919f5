"""How long to wait before trying again; with jitter, so that many clients do not come at once."""

import random
from collections.abc import Callable


class Backoff:
    """Delays that double up to a limit; each is shortened at random by up to a half."""

    def __init__(
        self,
        first: float,
        limit: float,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._first = first
        self._limit = limit
        self._jitter = jitter
        self.failures = 0

    def next(self) -> float:
        """The delay after one more failure."""
        # The exponent is bounded: after a night of failures 2**n would no longer be a float.
        delay = min(self._limit, self._first * 2 ** min(self.failures, 32))
        self.failures += 1
        return float(delay * (1 - self._jitter() / 2))

    def reset(self) -> None:
        """It worked: start with the first delay again."""
        self.failures = 0
