"""Parses durations on the command line: `30m`, `1h30m`, `5s`."""

from datetime import timedelta
from typing import Any

import click

from quarterdeck.api.times import parse_duration, show_duration

LONGEST = timedelta(days=366)
"""Beyond it, sums with today's date end after the last day that there is."""

__all__ = ["Duration", "parse_duration", "show_duration"]


class Duration(click.ParamType[timedelta]):
    """The click type of a duration."""

    name = "duration"

    def __init__(self, *, whole: bool = False, zero: bool = False) -> None:
        """`whole` accepts whole seconds only; `zero` accepts a duration of zero."""
        self._whole = whole
        self._zero = zero

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The duration, or a usage error with an example."""
        if isinstance(value, timedelta):
            return value
        length = parse_duration(value, zero=self._zero)
        if length is None and parse_duration(value, zero=True) is not None:
            self.fail(f"{value!r} is too short; write a length of time above zero, like 45s")
        if length is None:
            self.fail(f"{value!r} is not a length of time; write it like 30m, 1h30m or 45s")
        if length > LONGEST:
            self.fail(f"{value!r} is too long; write at most {LONGEST.days}d")
        if self._whole and length.microseconds:
            self.fail(f"{value!r} is not in whole seconds")
        return length
