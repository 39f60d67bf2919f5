"""What all tests share."""

import signal
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import settings

WORTH_A_SUMMARY = 120.0
"""Seconds of tests after which a run says where its time went."""

DURATIONS = Path(__file__).with_name("durations.txt")
"""Files of tests and the seconds that they took; those that take longest run first."""
WORTH_A_LINE = 3.0
"""Seconds from which on a file is in that list."""

pytest_plugins = ["pytester"]

# A deadline per example is a timed test: on a busy machine it fails for no fault of ours.
settings.register_profile("quarterdeck", deadline=None)
settings.load_profile("quarterdeck")

# A script that runs the tests in its background has switched Ctrl-C off for them, and for every
# process that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option by which a whole run renews the list of durations."""
    parser.addoption("--write-durations", action="store_true", help=f"write {DURATIONS.name} anew")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first: one that comes last keeps a single worker busy."""
    known = {}
    for line in DURATIONS.read_text().splitlines():
        seconds, name = line.split()
        known[name] = float(seconds)
    items.sort(key=lambda item: -known.get(file_of(item.nodeid), 0.0))


def file_of(nodeid: str) -> str:
    """The file that a test is in."""
    return nodeid.partition("::")[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say where the time went, for a run long enough to ask."""
    reports = [
        report
        for group in terminalreporter.stats.values()
        for report in group
        if isinstance(report, pytest.TestReport)
    ]
    if terminalreporter.config.getoption("--write-durations"):
        DURATIONS.write_text(durations(reports))
    lines = slowest(reports)
    if lines:
        terminalreporter.section("where the time went")
        for line in lines:
            terminalreporter.write_line(line)


def durations(reports: Sequence[pytest.TestReport]) -> str:
    """A line for each file that takes some time, the longest first."""
    files: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        files[file_of(report.nodeid)] += report.duration
    taken = sorted((-seconds, name) for name, seconds in files.items() if seconds >= WORTH_A_LINE)
    return "".join(f"{-seconds:.0f} {name}\n" for seconds, name in taken)


def slowest(reports: Sequence[pytest.TestReport]) -> list[str]:
    """The folders and the tests that took longest, set-up and clean-up included."""
    folders: defaultdict[str, float] = defaultdict(float)
    tests: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        tests[report.nodeid] += report.duration
        folders[str(PurePosixPath(file_of(report.nodeid)).parent)] += report.duration
    if sum(folders.values()) < WORTH_A_SUMMARY:
        return []
    return [*_longest(folders, 8), *_longest(tests, 12)]


def _longest(times: Mapping[str, float], count: int) -> list[str]:
    ordered = sorted(times.items(), key=lambda item: -item[1])
    return [f"{seconds:7.1f} s  {name}" for name, seconds in ordered[:count]]
