"""The back-off for restarts of a crashed component. Pure: times are passed in."""

import msgspec

FIRST_DELAY = 0.5
FACTOR = 2.0
LONGEST_DELAY = 30.0
STABLE_AFTER = 60.0
"""Seconds after which a running component's back-off starts from the beginning."""


class CrashHistory(msgspec.Struct, frozen=True):
    """One component's crashes and restarts."""

    restarts: int = 0
    """How often it was restarted in total."""
    in_a_row: int = 0
    started_at: float = 0.0
    due_at: float | None = None
    """When it is restarted next; None while it runs."""


def crashed(history: CrashHistory, now: float) -> CrashHistory:
    """The history after a crash at this time."""
    stable = now - history.started_at >= STABLE_AFTER
    in_a_row = 1 if stable else history.in_a_row + 1
    due_at = now + delay(in_a_row)
    return msgspec.structs.replace(history, in_a_row=in_a_row, due_at=due_at)


def started(history: CrashHistory, now: float) -> CrashHistory:
    """The history after a restart at this time."""
    return msgspec.structs.replace(
        history, restarts=history.restarts + 1, started_at=now, due_at=None
    )


def delay(in_a_row: int) -> float:
    """Seconds to wait after that many crashes in a row."""
    # The exponent is bounded: a float overflows, a crash loop goes on.
    return min(LONGEST_DELAY, FIRST_DELAY * FACTOR ** min(in_a_row - 1, 30))
