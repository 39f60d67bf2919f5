"""The kubelet's query parameters for logs, and no others.

An unknown parameter is refused: a log without it would not be the log that was requested.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

STREAMS = ("All", "Stdout", "Stderr")


class BadQueryError(Exception):
    """An invalid query: the parameter, its value, and the remedy."""


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The requested part and form of a log."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since_seconds: int | None = None
    since_time: datetime | None = None
    stream: str = "All"

    def start(self, now: datetime) -> str:
        """The time of the first requested line, in the logs' format; empty for all lines."""
        since = self.since_time
        try:
            if self.since_seconds is not None:
                since = now - timedelta(seconds=self.since_seconds)
            if since is None:
                return ""
            since = since.astimezone(UTC)
        except OverflowError:  # before all times that there are
            return ""
        return f"{since:%Y-%m-%dT%H:%M:%S.%f}000Z".zfill(len("2026-03-01T12:00:00.000000000Z"))


def parse_query(parameters: Mapping[str, str]) -> LogQuery:
    """The query in these parameters; raises `BadQueryError` for an unknown one."""
    fields: dict[str, object] = {}
    for name, value in parameters.items():
        if name not in _PARAMETERS:
            known = ", ".join(_PARAMETERS)
            raise BadQueryError(f"{name}: {value!r}: this node understands only {known}")
        field, parse = _PARAMETERS[name]
        try:
            fields[field] = parse(value)
        except ValueError as error:
            raise BadQueryError(f"{name}: {value!r}: {error}") from None
    return LogQuery(**fields)  # type: ignore[arg-type]


def _flag(value: str) -> bool:
    if value not in ("true", "false", "1", "0", ""):
        raise ValueError("use true or false")
    return value in ("true", "1")


def _count(value: str) -> int:
    if not value.isdecimal():
        raise ValueError("use a whole number that is not negative")
    return int(value)


def _positive(value: str) -> int:
    if not value.isdecimal() or int(value) == 0:
        raise ValueError("use a whole number above zero")
    return int(value)


def _moment(value: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("use a time such as 2026-03-01T12:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _stream(value: str) -> str:
    if value not in STREAMS:
        raise ValueError(f"use one of {', '.join(STREAMS)}")
    return value


_PARAMETERS = {
    "follow": ("follow", _flag),
    "previous": ("previous", _flag),
    "timestamps": ("timestamps", _flag),
    "tailLines": ("tail_lines", _count),
    "limitBytes": ("limit_bytes", _positive),
    "sinceSeconds": ("since_seconds", _positive),
    "sinceTime": ("since_time", _moment),
    "stream": ("stream", _stream),
}
