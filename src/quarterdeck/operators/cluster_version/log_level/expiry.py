"""The expiry of a log level: an annotation, so that it survives restarts. Pure.

`quarterdeck.dev/log-level-expiry: Trace until 2026-11-16T02:30:00Z, then Normal`

It applies only to the level that it names. If the object asks for another level, the operator
removes the annotation.
"""

import re
from datetime import UTC, datetime

import msgspec

from quarterdeck.api.times import format_time
from quarterdeck.operators.cluster_version.log_level.levels import LEVELS, NORMAL

ANNOTATION = "quarterdeck.dev/log-level-expiry"

_PATTERN = re.compile(r"(?P<level>\w+) until (?P<until>\S+?)(, then (?P<then>\w+))?")


class Expiry(msgspec.Struct, frozen=True, kw_only=True):
    """A level, the time when it expires, and the next level."""

    level: str
    until: datetime
    then: str = NORMAL

    def __str__(self) -> str:
        return f"{self.level} until {format_time(self.until)}, then {self.then}"


def parse_expiry(text: str) -> Expiry | None:
    """The expiry in an annotation; None if it cannot be parsed."""
    found = _PATTERN.fullmatch(text.strip())
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
        # The last day of the calendar has no UTC time in some time zones.
        return Expiry(level=level, until=until.astimezone(UTC), then=then)
    except OverflowError:
        return None


UNREADABLE_REMEDY = (
    f"write it like {str(Expiry(level='Trace', until=datetime(2030, 1, 31, 12, tzinfo=UTC)))!r}, "
    "or use: quarterdeck log-level set LEVEL --for 30m"
)
