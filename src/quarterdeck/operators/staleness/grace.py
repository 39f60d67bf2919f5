"""The grace period after the checker's start, an outage, or a standstill. Pure.

Right after each of these, live operators have not written yet. A pulse, every two seconds, notes
that this process runs and that the API server answers. A gap between two pulses is a standstill: of
this process (a container that is paused with the operators beside it), or of a server that hangs
with its connections open. In a sleep of the machine the monotonic clock stands still too: the wall
clock has then advanced more. A wall clock that was set looks the same, and gets the same grace
period.
"""

CLOCK_DRIFT_LIMIT = 5.0
"""The most seconds by which the two clocks may drift apart since the last pulse."""
STANDSTILL_LIMIT = 5.0
"""The most seconds since the last pulse; after that the process or the server stood still."""


class Grace:
    """How much of the grace period is left; each call passes in both clocks."""

    def __init__(self, seconds: float, monotonic: float, wall: float) -> None:
        self._seconds = seconds
        self._from = monotonic
        self._pulse = (monotonic, wall)

    def pulse(self, monotonic: float, wall: float) -> None:
        """Note that the process runs and the server answers."""
        self.left(monotonic, wall)
        self._pulse = (monotonic, wall)

    def left(self, monotonic: float, wall: float, reached: float = 0.0) -> float:
        """The seconds until the checker may write; 0 if it may now.

        `reached` is the start of the time without an outage of the API server.
        """
        self._from = max(self._from, reached)
        since, at = monotonic - self._pulse[0], wall - self._pulse[1]
        if since > STANDSTILL_LIMIT or abs(at - since) > CLOCK_DRIFT_LIMIT:
            self._from = monotonic
        return max(0.0, self._from + self._seconds - monotonic)

    def silent_for(self, monotonic: float) -> float:
        """The seconds since the last pulse, if these are a standstill; else 0."""
        since = monotonic - self._pulse[0]
        return since if since > STANDSTILL_LIMIT else 0.0
