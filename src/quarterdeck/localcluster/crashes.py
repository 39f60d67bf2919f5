"""The back-off for restarts of a crashed component. Pure: times are passed in."""

import msgspec

from quarterdeck.backoff import RestartBackoff

BACKOFF = RestartBackoff(first=0.5, maximum=30.0, reset=60.0)


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
    in_a_row = BACKOFF.crashes(history.in_a_row, now - history.started_at)
    due_at = now + BACKOFF.delay(in_a_row)
    return msgspec.structs.replace(history, in_a_row=in_a_row, due_at=due_at)


def started(history: CrashHistory, now: float) -> CrashHistory:
    """The history after a restart at this time."""
    return msgspec.structs.replace(
        history, restarts=history.restarts + 1, started_at=now, due_at=None
    )
