"""The staleness checker's own options of `quarterdeck run`."""

from datetime import timedelta
from typing import Annotated

import msgspec

from quarterdeck.delivery.options import option


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """When the checker acts, and on which conditions."""

    interval: timedelta = timedelta(minutes=10)
    """How long an operator may be silent before it is asked for a sign of life, and again before
    its conditions become Unknown."""
    grace: Annotated[timedelta, option(zero=True)] = timedelta(seconds=30)
    """How long nothing is written after the start, or after a sleep of the machine."""
    keep_upgradeable_false: bool = False
    """Leave an Upgradeable=False alone, where Unknown would permit an upgrade."""
