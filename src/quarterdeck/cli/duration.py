"""Durations on the command line, as Kubernetes writes them: `90s`, `10m`, `1h30m`."""

import re
from datetime import timedelta
from typing import Any

import click

_UNITS = {"h": 3600, "m": 60, "s": 1}
_PART = r"\d+[hms]"


class Duration(click.ParamType[timedelta]):
    """A duration in whole seconds; `positive` refuses none at all."""

    name = "duration"

    def __init__(self, *, positive: bool = True) -> None:
        self._positive = positive

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The duration that a text means."""
        if isinstance(value, timedelta):
            return value
        if not re.fullmatch(rf"({_PART})+", value):
            self.fail(f"{value!r} is no duration; some are 6s, 10m, 1h30m", param, ctx)
        parts = re.findall(_PART, value)
        found = timedelta(seconds=sum(int(part[:-1]) * _UNITS[part[-1]] for part in parts))
        if self._positive and not found:
            self.fail("has to be longer than 0s", param, ctx)
        return found


def show_duration(seconds: float) -> str:
    """A duration for people, in its two largest units: `2d3h`, `9m59s`, `6s`."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])
