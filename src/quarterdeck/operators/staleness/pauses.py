"""How long to leave an operator alone to which the server refuses a write. Pure.

A policy refuses the write again and again. Shortly before each attempt the checker asks the server
every two seconds whether it accepts writes, so the attempts get rarer.
"""

from quarterdeck.backoff import Backoff, Retries

LONGEST = 600.0
"""The most seconds between two attempts, unless the interval is longer."""


class Pauses:
    """The pauses of all operators, by name."""

    def __init__(self, interval: float) -> None:
        """The first pause is as long as the interval, in seconds."""
        self._backoff = Backoff(base=interval, limit=max(interval, LONGEST), jitter=0.0)
        self._refused: dict[str, tuple[Retries, float]] = {}

    def refused(self, name: str, clock: float) -> None:
        """Note that the server has refused a write to this operator."""
        retries, _ = self._refused.get(name, (Retries(self._backoff), 0.0))
        self._refused[name] = (retries, clock + retries.next())

    def left(self, name: str, clock: float) -> float:
        """The seconds until the next attempt; 0 if it may be now."""
        _, until = self._refused.get(name, (None, clock))
        return max(0.0, until - clock)

    def forget(self, name: str) -> None:
        """Note that nothing is refused any more, or that nothing is to be written."""
        self._refused.pop(name, None)
