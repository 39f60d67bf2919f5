"""Lengths of time as people type them: `30m`, `1h30m`, `5s`."""

import re
from datetime import timedelta
from typing import Any

import click

_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"(\d+(?:\.\d+)?)([dhms])")


def parse_duration(text: str, *, zero: bool = False) -> timedelta | None:
    """The length of time; None when the text is none, or not longer than nothing without `zero`."""
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
    """A length of time in its two largest units: `2d3h`, `9m59s`, `6s`."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])


class Duration(click.ParamType[timedelta]):
    """A click type for such a length."""

    name = "duration"

    def __init__(self, *, whole: bool = False, zero: bool = False) -> None:
        """Take only `whole` seconds; `zero` lets none at all through."""
        self._whole = whole
        self._zero = zero

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The length, or a usage error that says how to write one."""
        if isinstance(value, timedelta):
            return value
        length = parse_duration(value, zero=self._zero)
        if length is None:
            self.fail(f"{value!r} is not a length of time; write it like 30m, 1h30m or 45s")
        if self._whole and length.microseconds:
            self.fail(f"{value!r} is not in whole seconds")
        return length
