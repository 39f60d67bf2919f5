"""What can be set for the staleness checker."""

from datetime import timedelta

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How patient the checker is."""

    interval: timedelta = timedelta(minutes=10)
    """How long an operator may be silent before it is asked, and again before it is given up."""
    grace: timedelta = timedelta(seconds=30)
    """How long nothing is written after the checker's start or after a sleep of the machine."""
    keep_upgradeable_false: bool = False
    """Leave an Upgradeable=False alone: some cluster version operators take Unknown for a yes."""
