"""Times and durations in the API's format: UTC, in whole seconds."""

import re
from datetime import UTC, datetime, timedelta

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"(\d+(?:\.\d+)?)([dhms])")


def format_time(moment: datetime) -> str:
    """The time in the API's format."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(value: object) -> datetime | None:
    """A time in the API's format; None for anything else."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_duration(text: str, *, zero: bool = False) -> timedelta | None:
    """The duration in the text; None if the text has none, or if it is zero and `zero` is False."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    try:
        length = sum(
            (timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta()
        )
    except OverflowError:
        return None
    return length if length or zero else None


def show_duration(seconds: float) -> str:
    """A duration in its two largest units: `2d3h`, `9m59s`, `6s`."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])
