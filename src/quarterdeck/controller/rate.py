"""A rate over everything, by a token bucket. Pure: the time is passed in."""


class TokenBucket:
    """A rate over everything: `burst` at once, then `rate` a second."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, *, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._at: float | None = None

    def reserve(self, now: float) -> float:
        """Take a token, from the future if need be; the seconds until it may be used."""
        self._refill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def take(self, now: float) -> bool:
        """Take a token if there is one now."""
        self._refill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def is_full(self, now: float) -> bool:
        """Whether it is as good as a new one."""
        self._refill(now)
        return self._tokens >= self._burst

    def _refill(self, now: float) -> None:
        if self._at is not None:
            earned = (now - self._at) * self._rate
            self._tokens = min(float(self._burst), self._tokens + earned)
        self._at = now
