"""Durations on the command line."""

from datetime import timedelta

import click
import pytest

from quarterdeck.cli.durations import Duration, show_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("6s", 6), ("10m", 600), ("1h30m", 5400), ("1m30s", 90), ("1.5s", 1.5)],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "10", "-3s", "3x", "10 m", "0s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Duration().convert(text, None, None)


def test_zero_is_refused_as_too_short() -> None:
    with pytest.raises(click.BadParameter, match="'0s' is too short"):
        Duration().convert("0s", None, None)


@pytest.mark.parametrize("text", ["367d", "99999999h"])
def test_ages_are_refused_as_too_long(text: str) -> None:
    """`explain --interval=99999999h` ended in a traceback, and a checker would have failed."""
    with pytest.raises(click.BadParameter, match="is too long; write at most 366d"):
        Duration().convert(text, None, None)


def test_parts_of_a_second_can_be_refused() -> None:
    with pytest.raises(click.BadParameter):
        Duration(whole=True).convert("1.5s", None, None)


def test_nothing_at_all_can_be_allowed() -> None:
    assert Duration(zero=True).convert("0s", None, None) == timedelta()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-4, "0s"), (6.4, "6s"), (599, "9m59s"), (3600, "1h"), (90061, "1d1h")],
)
def test_a_duration_is_shown_in_two_units(seconds: float, text: str) -> None:
    assert show_duration(seconds) == text
