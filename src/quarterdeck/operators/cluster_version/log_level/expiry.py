"""Until when a log level holds, and what comes then: an annotation, so that it outlives everybody.

`quarterdeck.dev/log-level-expiry: Trace until 2026-11-16T02:30:00Z, then Normal`

It is about the level that it names: once the object asks for another one, it means nothing any
more and is taken away. Pure; the operator carries it out, also after a restart.
"""

import re
from datetime import UTC, datetime

import msgspec

from quarterdeck.api.times import format_time
from quarterdeck.operators.cluster_version.log_level.levels import LEVELS, NORMAL

ANNOTATION = "quarterdeck.dev/log-level-expiry"

_WRITTEN = re.compile(r"(?P<level>\w+) until (?P<until>\S+?)(, then (?P<then>\w+))?")


class Expiry(msgspec.Struct, frozen=True, kw_only=True):
    """A level that holds until a time, and the one that holds after it."""

    level: str
    until: datetime
    then: str = NORMAL

    def __str__(self) -> str:
        return f"{self.level} until {format_time(self.until)}, then {self.then}"


def parse_expiry(text: str) -> Expiry | None:
    """The expiry that an annotation says; None when it cannot be read."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        return None
    level, then = found["level"], found["then"] or NORMAL
    try:
        until = datetime.fromisoformat(found["until"])
    except ValueError:
        return None
    if until.tzinfo is None or level not in LEVELS or then not in LEVELS:
        return None
    try:
        # In UTC, as everybody compares and writes it: the end of the calendar has none.
        return Expiry(level=level, until=until.astimezone(UTC), then=then)
    except OverflowError:
        return None


UNREADABLE_REMEDY = (
    f"write it like {str(Expiry(level='Trace', until=datetime(2030, 1, 31, 12, tzinfo=UTC)))!r}, "
    "or use: quarterdeck log-level set LEVEL --for 30m"
)
