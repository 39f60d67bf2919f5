"""Limits a rate by a token bucket. Pure: the time is passed in."""


class TokenBucket:
    """Allows `burst` at once, then `rate` a second."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, *, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._at: float | None = None

    def reserve(self, now: float) -> float:
        """Take a token, a future one if need be; return the seconds until it may be used."""
        self._refill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def take(self, now: float) -> bool:
        """Take a token if there is one; return whether there was."""
        self._refill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def is_full(self, now: float) -> bool:
        """Whether all tokens are back, as in a new bucket."""
        self._refill(now)
        return self._tokens >= self._burst

    def _refill(self, now: float) -> None:
        if self._at is not None:
            earned = (now - self._at) * self._rate
            self._tokens = min(float(self._burst), self._tokens + earned)
        self._at = now
