"""When a crashed component is started again: soon at first, then ever later.

Pure: the supervisor tells what happened and when, and asks what is due.
"""

import msgspec

FIRST_DELAY = 0.5
FACTOR = 2.0
LONGEST_DELAY = 30.0
STABLE_AFTER = 60.0
"""A component that has run this long has left its earlier crashes behind."""


class History(msgspec.Struct, frozen=True):
    """What is known about one component's crashes."""

    restarts: int = 0
    """How often it was started again, all in all."""
    in_a_row: int = 0
    started_at: float = 0.0
    due_at: float | None = None
    """When it is to be started again; None while it runs."""


def crashed(history: History, now: float) -> History:
    """The history after a crash that was noticed now."""
    stable = now - history.started_at >= STABLE_AFTER
    in_a_row = 1 if stable else history.in_a_row + 1
    due_at = now + delay(in_a_row)
    return msgspec.structs.replace(history, in_a_row=in_a_row, due_at=due_at)


def started(history: History, now: float) -> History:
    """The history after a start again."""
    return msgspec.structs.replace(
        history, restarts=history.restarts + 1, started_at=now, due_at=None
    )


def delay(in_a_row: int) -> float:
    """Seconds to wait after that many crashes in a row."""
    # The exponent is kept small: a float has an end, a crash loop has none.
    return min(LONGEST_DELAY, FIRST_DELAY * FACTOR ** min(in_a_row - 1, 30))
