"""How long the checker writes nothing: after its start, an outage, or a sleep of the machine. Pure.

Right after each of them the operators are not at work yet, though they live. A sleep shows as a
wall clock that has gone on while the monotonic clock has not; a wall clock that was set to
another time looks the same, and gets the same answer.
"""

SLACK = 5.0
"""Seconds by which the two clocks may drift apart between two looks."""


class Grace:
    """Whether writing may begin; told both clocks at each look."""

    def __init__(self, seconds: float, monotonic: float, wall: float) -> None:
        self._seconds = seconds
        self._from = monotonic
        self._looked = (monotonic, wall)

    def left(self, monotonic: float, wall: float, reached: float = 0.0) -> float:
        """The seconds until something may be written; 0 when it may.

        `reached` is from when on the API server could be reached without an outage.
        """
        self._from = max(self._from, reached)
        since, at = monotonic - self._looked[0], wall - self._looked[1]
        if abs(at - since) > SLACK:
            self._from = monotonic
        self._looked = (monotonic, wall)
        return max(0.0, self._from + self._seconds - monotonic)
