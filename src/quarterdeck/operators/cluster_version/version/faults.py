"""Chooses the engine's faults to report, so that ClusterVersion's Failing does not flap.

A fault that ends within seconds is not reported: many steps succeed at the next try. A reported
fault stays until all manifests are done, or until nothing has failed for a while. Pure: the
monotonic time is passed in.
"""

import msgspec

from quarterdeck.operators.cluster_version.sync.progress import ManifestFault, PayloadProgress

REPORT_AFTER = 10.0
"""Seconds for which a fault must last before it is reported."""
QUIET_PERIOD = 20.0
"""Seconds without a fault after which the last faults end, while not all is done."""


class StandingFaults(msgspec.Struct, frozen=True, kw_only=True):
    """The last faults, and since when there have been any."""

    faults: tuple[ManifestFault, ...] = ()
    since: float = 0.0
    seen: float = 0.0
    """When the engine last reported a fault."""

    def reportable(
        self, now: float, report_after: float = REPORT_AFTER
    ) -> tuple[ManifestFault, ...]:
        """The faults that have lasted long enough to be reported."""
        return self.faults if self.faults and now - self.since >= report_after else ()

    def next_look(self, now: float, report_after: float = REPORT_AFTER) -> float | None:
        """The seconds until `reportable` may change without new progress."""
        if not self.faults:
            return None
        ripe, over = self.since + report_after - now, self.seen + QUIET_PERIOD - now
        return max(0.05, ripe if ripe > 0 else over)


NONE = StandingFaults()


def standing(
    before: StandingFaults, progress: PayloadProgress | None, now: float
) -> StandingFaults:
    """The standing faults after the engine's latest progress."""
    if progress is None:
        return before
    if progress.faults:
        since = before.since if before.faults else now
        return StandingFaults(faults=progress.faults, since=since, seen=now)
    if progress.completed or now - before.seen >= QUIET_PERIOD:
        return NONE
    return before
