"""The grace period after the checker's start, an outage, or a sleep of the machine. Pure.

Right after each of these, live operators have not written yet. After a sleep the wall clock has
advanced more than the monotonic clock. A wall clock that was set looks the same, and gets the same
grace period.
"""

CLOCK_DRIFT_LIMIT = 5.0
"""The most seconds by which the two clocks may drift apart between two calls."""


class Grace:
    """How much of the grace period is left; each call passes in both clocks."""

    def __init__(self, seconds: float, monotonic: float, wall: float) -> None:
        self._seconds = seconds
        self._from = monotonic
        self._looked = (monotonic, wall)

    def observe(self, monotonic: float, wall: float, reached: float = 0.0) -> float:
        """The seconds until the checker may write; 0 if it may now.

        `reached` is the start of the time without an outage of the API server.
        """
        self._from = max(self._from, reached)
        since, at = monotonic - self._looked[0], wall - self._looked[1]
        if abs(at - since) > CLOCK_DRIFT_LIMIT:
            self._from = monotonic
        self._looked = (monotonic, wall)
        return max(0.0, self._from + self._seconds - monotonic)
