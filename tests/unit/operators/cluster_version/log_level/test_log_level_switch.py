"""The process's verbosity: when it changes, and which lines tell of it."""

import io
import json

from quarterdeck import log as logs
from quarterdeck.operators.cluster_version.log_level.decision import STARTUP, LevelDecision
from quarterdeck.operators.cluster_version.log_level.levels import LEVELS
from quarterdeck.operators.cluster_version.log_level.switch import Switch


def to(level: str) -> LevelDecision:
    return LevelDecision(level=level, verbosity=LEVELS.get(level, 3), why="a test")


def reported(switch: Switch) -> tuple[str, str] | None:
    """The change that a leader reports now."""
    change = switch.unreported_change
    assert switch.unreported_change == change, "to ask changes nothing"
    switch.mark_reported()
    return change


def lines(written: io.StringIO) -> list[tuple[str, int]]:
    found = [json.loads(line) for line in written.getvalue().splitlines()]
    return [(line["event"].partition(" ")[0], line["v"]) for line in found]


def test_each_level_has_a_first_and_a_last_line_of_its_own(written: io.StringIO) -> None:
    switch = Switch()
    switch.turn(to("Trace"))
    switch.turn(to("Normal"))
    assert lines(written) == [("last", 2), ("first", 6), ("last", 6), ("first", 2)]
    assert logs.verbosity() == 2


def test_what_is_in_force_already_is_silent(written: io.StringIO) -> None:
    switch = Switch()
    switch.turn(to("Debug"))
    so_far = written.getvalue()
    for _ in range(3):
        switch.turn(to("Debug"))
    assert written.getvalue() == so_far


def test_a_change_is_told_once(written: io.StringIO) -> None:
    switch = Switch()
    assert reported(switch) is None
    switch.turn(to("Debug"))
    assert reported(switch) == ("Normal", "Debug")
    assert reported(switch) is None


def test_changes_that_nobody_asked_about_become_one(written: io.StringIO) -> None:
    switch = Switch()
    for level in ("Debug", "Trace", "TraceAll"):
        switch.turn(to(level))
    assert reported(switch) == ("Normal", "TraceAll")
    for level in ("Debug", "TraceAll"):
        switch.turn(to(level))
    assert reported(switch) is None, "back where it was"


def test_the_verbosity_of_the_start_comes_back_with_the_gate_off(written: io.StringIO) -> None:
    logs.set_verbosity(3)
    switch = Switch()
    assert switch.startup == 3
    switch.turn(to("TraceAll"))
    switch.turn(to(STARTUP))
    assert logs.verbosity() == 3
