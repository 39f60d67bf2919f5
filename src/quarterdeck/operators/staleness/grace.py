"""The grace period after the checker's start, an outage, or a standstill. Pure.

Right after each of these, live operators have not written yet. A pulse, every two seconds, notes
that this process runs and, shortly before a verdict, that the API server accepts writes. A gap
between two pulses is a standstill: of this process (a container that is paused with the operators
beside it), of a server that hangs with its connections open, or of a storage that refuses writes.
In a sleep of the machine the monotonic clock stands still too: the wall clock has then advanced
more. A wall clock that was set looks the same, and gets the same grace period.

A verdict comes after a whole grace period in which the server accepted writes. But a dead operator
must not hide behind a server that fails now and then. So it is enough if the server has accepted as
many writes as a grace period has pulses, and no gap between them was as long as the grace period:
an operator that retries has got through. And if our own writes alone are refused all the time, a
verdict is tried all the same, and the server decides.
"""

import math

PULSE_PERIOD = 2.0
"""The seconds between two pulses."""
CLOCK_DRIFT_LIMIT = 5.0
"""The most seconds by which the two clocks may drift apart since the last pulse."""
STANDSTILL_LIMIT = 5.0
"""The most seconds since the last pulse; after that the process or the server stood still."""


class Grace:
    """How much of the grace period is left; each call passes in both clocks."""

    def __init__(self, seconds: float, monotonic: float, wall: float) -> None:
        self.seconds = seconds
        self._from = monotonic
        self._pulse = (monotonic, wall)
        self._proved_from: float | None = None
        """The first of the accepted writes that no verdict has ended."""
        self._accepted = 0
        """The pulses with an accepted write since the last long gap."""
        self._counted = monotonic
        """The last one of them."""
        self._refused_from: float | None = None

    def pulse(self, monotonic: float, wall: float) -> None:
        """Note that the process runs; no verdict is due, so it does not matter what else does."""
        self.left(monotonic, wall)
        self._pulse = (monotonic, wall)
        self._proved_from = self._refused_from = None
        self._accepted = 0

    def accepted(self, monotonic: float, wall: float) -> None:
        """Note that the server has accepted a write."""
        self.left(monotonic, wall)
        # Answers to several requests that hung come at once, and count once.
        if not self._accepted or monotonic - self._counted >= PULSE_PERIOD:
            self._accepted += 1
            self._counted = monotonic
        self._pulse = (monotonic, wall)
        self._refused_from = None
        if self._proved_from is None:
            self._proved_from = monotonic

    def refused(self, monotonic: float, *, again: bool = False) -> None:
        """Note that the server has refused a write; `again` if it was to a ClusterOperator."""
        if self._refused_from is None or again:
            self._refused_from = monotonic

    def left(
        self, monotonic: float, wall: float, reached: float = 0.0, *, verdict: bool = False
    ) -> float:
        """The seconds until the checker may write, or may write a verdict; 0 if it may now.

        `reached` is the start of the time without an outage of the API server.
        """
        self._from = max(self._from, reached)
        since, at = monotonic - self._pulse[0], wall - self._pulse[1]
        drifted = abs(at - since) > CLOCK_DRIFT_LIMIT
        if since > STANDSTILL_LIMIT or drifted:
            self._from = monotonic
        if since > max(self.seconds, STANDSTILL_LIMIT) or drifted:
            self._accepted = 0
        if self._accepted > math.ceil(self.seconds / PULSE_PERIOD):
            return 0.0
        begin = self._from
        if verdict:
            begin = max(begin, monotonic if self._proved_from is None else self._proved_from)
        return max(0.0, begin + self.seconds - monotonic)

    def refused_for(self, monotonic: float) -> float:
        """For how many seconds the server has refused each write; 0 if it has not."""
        return 0.0 if self._refused_from is None else monotonic - self._refused_from

    def silent_for(self, monotonic: float) -> float:
        """The seconds since the last pulse, if these are a standstill; else 0."""
        since = monotonic - self._pulse[0]
        return since if since > STANDSTILL_LIMIT else 0.0
