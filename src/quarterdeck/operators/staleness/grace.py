"""The grace period after the checker's start, an outage, or a standstill. Pure.

Right after each of these, live operators have not written yet. A pulse, every two seconds, notes
that this process runs and, shortly before a verdict, that the API server accepts writes. A gap
between two pulses is a standstill: of this process (a container that is paused with the operators
beside it), of a server that hangs with its connections open, or of a storage that refuses writes.
In a sleep of the machine the monotonic clock stands still too: the wall clock has then advanced
more. A wall clock that was set looks the same, and gets the same grace period.

A verdict comes after a whole grace period in which the server accepted writes. But a dead operator
must not hide behind a server that fails now and then. So it is enough if the server has accepted as
many writes as a grace period has pulses since the challenge, and no gap between them was as long as
the grace period: an operator that retries has got through. And if our own writes alone are refused
all the time, a verdict is tried all the same, and the server decides.

A challenge does no harm: a live operator answers it. So it waits for a grace period too, but not
for ever where the process stands still or the watch is lost again and again: it is enough if they
have worked for as long as a grace period in all, and no gap was longer than that.
"""

import math
from collections import deque

PULSE_PERIOD = 2.0
"""The seconds between two pulses."""
CLOCK_DRIFT_LIMIT = 5.0
"""The most seconds by which the two clocks may drift apart since the last pulse."""
STANDSTILL_LIMIT = 5.0
"""The most seconds since the last pulse; after that the process or the server stood still."""


class Grace:
    """How much of the grace period is left; each call passes in both clocks.

    `reached` is the start of the time without an outage of the API server, and now in an outage.
    """

    def __init__(self, seconds: float, monotonic: float, wall: float) -> None:
        self.seconds = seconds
        self._longest_gap = max(seconds, STANDSTILL_LIMIT)
        self._from = monotonic
        self._pulse = (monotonic, wall)
        self._worked_at = monotonic
        """The last pulse while the server was reached."""
        self._worked = 0.0
        """The seconds of work since the first of the disturbances that follow closely."""
        self._proved_from: float | None = None
        """The first of the accepted writes that no verdict has ended."""
        self._accepted: deque[float] = deque(maxlen=math.ceil(seconds / PULSE_PERIOD) + 1)
        """The last pulses with an accepted write, none of them after a long gap."""
        self._refused_from: float | None = None

    def pulse(self, monotonic: float, wall: float, reached: float = 0.0) -> None:
        """Note that the process runs; no verdict is due, so it does not matter what else does."""
        self.left(monotonic, wall, reached)
        self._note(monotonic, wall, reached)
        self._proved_from = self._refused_from = None
        self._accepted.clear()

    def accepted(self, monotonic: float, wall: float, reached: float = 0.0) -> None:
        """Note that the server has accepted a write."""
        self.left(monotonic, wall, reached)
        # Answers to several requests that hung come at once, and count once.
        if not self._accepted or monotonic - self._accepted[-1] >= PULSE_PERIOD:
            self._accepted.append(monotonic)
        self._note(monotonic, wall, reached)
        self._refused_from = None
        if self._proved_from is None:
            self._proved_from = monotonic

    def refused(self, monotonic: float, *, again: bool = False) -> None:
        """Note that the server has refused a write; `again` if it was to a ClusterOperator.

        Then an operator cannot write either, whatever was accepted before.
        """
        if self._refused_from is None or again:
            self._refused_from = monotonic
        if again:
            self._proved_from = None
            self._accepted.clear()

    def left(
        self,
        monotonic: float,
        wall: float,
        reached: float = 0.0,
        *,
        verdict: bool = False,
        challenged: float = 0.0,
    ) -> float:
        """The seconds until the checker may write, or may write a verdict; 0 if it may now.

        `challenged` is when this checker first saw the challenge that the verdict is about.
        """
        self._begin_again_if_disturbed(monotonic, wall, reached)
        begin = self._from
        if verdict:
            whole = len(self._accepted) == self._accepted.maxlen
            if whole and self._accepted[0] >= challenged:
                return 0.0
            begin = max(begin, monotonic if self._proved_from is None else self._proved_from)
        elif self._worked >= self.seconds:
            return 0.0
        return max(0.0, begin + self.seconds - monotonic)

    def refused_for(self, monotonic: float) -> float:
        """For how many seconds the server has refused each write; 0 if it has not."""
        return 0.0 if self._refused_from is None else monotonic - self._refused_from

    def silent_for(self, monotonic: float) -> float:
        """The seconds since the last pulse, if these are a standstill; else 0."""
        since = monotonic - self._pulse[0]
        return since if since > STANDSTILL_LIMIT else 0.0

    def _begin_again_if_disturbed(self, monotonic: float, wall: float, reached: float) -> None:
        since, at = monotonic - self._pulse[0], wall - self._pulse[1]
        drift = abs(at - since)
        disturbed = since > STANDSTILL_LIMIT or drift > CLOCK_DRIFT_LIMIT
        begin = monotonic if disturbed else max(self._from, reached)
        if since > self._longest_gap or drift > CLOCK_DRIFT_LIMIT:
            self._accepted.clear()
        # With some time to spare, in which a challenge could be written.
        passed = self._from + self.seconds + STANDSTILL_LIMIT <= self._worked_at
        gap = max(drift, monotonic - self._worked_at)
        if (begin > self._from and passed) or gap > self._longest_gap:
            self._worked = 0.0
        self._from = begin

    def _note(self, monotonic: float, wall: float, reached: float) -> None:
        self._pulse = (monotonic, wall)
        if reached < monotonic:
            gap = monotonic - self._worked_at
            self._worked += min(gap, PULSE_PERIOD) if gap <= self._longest_gap else 0.0
            self._worked_at = monotonic
