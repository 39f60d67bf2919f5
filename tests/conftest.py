"""What all tests share."""

import signal
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

import pytest
from hypothesis import settings

WORTH_A_SUMMARY = 120.0
"""Seconds of tests after which a run says where its time went."""

pytest_plugins = ["pytester"]

# A deadline per example is a timed test: on a busy machine it fails for no fault of ours.
settings.register_profile("quarterdeck", deadline=None)
settings.load_profile("quarterdeck")

# A script that runs the tests in its background has switched Ctrl-C off for them, and for every
# process that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where the time went, for a run long enough to ask."""
    reports = [
        report
        for group in terminalreporter.stats.values()
        for report in group
        if isinstance(report, pytest.TestReport)
    ]
    lines = slowest(reports)
    if lines:
        terminalreporter.section("where the time went")
        for line in lines:
            terminalreporter.write_line(line)


def slowest(reports: Sequence[pytest.TestReport]) -> list[str]:
    """The folders and the tests that took longest, set-up and clean-up included."""
    folders: defaultdict[str, float] = defaultdict(float)
    tests: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        tests[report.nodeid] += report.duration
        folders[str(PurePosixPath(report.nodeid.partition("::")[0]).parent)] += report.duration
    if sum(folders.values()) < WORTH_A_SUMMARY:
        return []
    return [*_longest(folders, 8), *_longest(tests, 12)]


def _longest(times: Mapping[str, float], count: int) -> list[str]:
    ordered = sorted(times.items(), key=lambda item: -item[1])
    return [f"{seconds:7.1f} s  {name}" for name, seconds in ordered[:count]]
