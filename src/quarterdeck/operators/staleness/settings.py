"""The staleness checker's own options of `quarterdeck run`."""

from datetime import timedelta
from typing import Annotated

import msgspec

from quarterdeck.delivery.options import option


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """When the checker acts, and on which conditions."""

    interval: timedelta = timedelta(minutes=10)
    """How long an operator may be silent before the checker challenges it, and after that before
    its conditions become Unknown."""
    grace: Annotated[timedelta, option(zero=True)] = timedelta(seconds=30)
    """How long the API server has to accept writes before a verdict, and how long the checker
    writes nothing after its start, an outage or a sleep of the machine."""
    keep_upgradeable_false: bool = False
    """Keep a condition Upgradeable=False unchanged, because Unknown would allow an upgrade."""
