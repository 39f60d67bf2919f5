"""Which faults of the engine stand, so that ClusterVersion's Failing does not flap.

A fault that is gone again within seconds is not told: much that fails while a payload is applied
succeeds at the next try. One that was told stands until everything is done without it, or nothing
has failed for a while. Pure: the monotonic time is passed in.
"""

import msgspec

from quarterdeck.operators.cluster_version.sync.progress import Fault, Progress

TOLD_AFTER = 10.0
"""Seconds that something has to go on failing before it is told."""
QUIET = 20.0
"""Seconds without a fault, while not all is done, after which the last ones are over."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """The faults that were seen last, and since when there have been some."""

    faults: tuple[Fault, ...] = ()
    since: float = 0.0
    seen: float = 0.0
    """When there was a fault last."""

    def told(self, now: float, told_after: float = TOLD_AFTER) -> tuple[Fault, ...]:
        """The faults that have stood long enough to be told."""
        return self.faults if self.faults and now - self.since >= told_after else ()

    def next_look(self, now: float, told_after: float = TOLD_AFTER) -> float | None:
        """In how many seconds `told` may change although nothing else does."""
        if not self.faults:
            return None
        ripe, over = self.since + told_after - now, self.seen + QUIET - now
        return max(0.05, ripe if ripe > 0 else over)


NONE = Standing()


def standing(before: Standing, progress: Progress | None, now: float) -> Standing:
    """What stands now, by what the engine tells now."""
    if progress is None:
        return before
    if progress.faults:
        since = before.since if before.faults else now
        return Standing(faults=progress.faults, since=since, seen=now)
    if progress.completed or now - before.seen >= QUIET:
        return NONE
    return before
