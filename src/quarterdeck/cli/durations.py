"""Lengths of time as people type them: `30m`, `1h30m`, `5s`."""

import re
from datetime import timedelta
from typing import Any

import click

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"(\d+(?:\.\d+)?)([dhms])")


def parse_duration(text: str) -> timedelta | None:
    """The length of time; None when the text is none, or not longer than nothing."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    try:
        length = sum(
            (timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta()
        )
    except OverflowError:
        return None
    return length if length > timedelta() else None


class Duration(click.ParamType[timedelta]):
    """A click type for such a length."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The length, or a usage error that says how to write one."""
        if isinstance(value, timedelta):
            return value
        length = parse_duration(value)
        if length is None:
            self.fail(f"{value!r} is not a length of time; write it like 30m, 1h30m or 45s")
        return length
