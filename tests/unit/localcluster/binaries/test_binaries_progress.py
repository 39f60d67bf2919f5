"""Progress as lines, with a clock of the test's own, and on a terminal."""

import io
import os
import pty
import subprocess
import sys

import pytest

from quarterdeck.localcluster.binaries.progress import (
    LineProgress,
    TerminalProgress,
    duration,
    progress_on,
    size,
    step,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_heartbeat_says_what_how_far_and_how_long_every_15_seconds() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = LineProgress(stream, clock)
    progress.begin("building etcd")
    for second in range(1, 47):
        clock.now = 100.0 + second
        progress.update(f"{second} of 50 packages", second / 50)
    progress.end("built etcd")
    assert stream.getvalue().splitlines() == [
        "building etcd",
        "building etcd: 15 of 50 packages, 15 s",
        "building etcd: 30 of 50 packages, 30 s",
        "building etcd: 45 of 50 packages, 45 s",
        "built etcd, 46 s",
    ]


def test_heartbeat_without_a_detail() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = LineProgress(stream, clock)
    progress.begin("waiting")
    clock.now += 75
    progress.update("")
    assert stream.getvalue().splitlines()[-1] == "waiting, 1 m 15 s"


def test_failed_step_has_no_result() -> None:
    stream = io.StringIO()
    with pytest.raises(RuntimeError), step(LineProgress(stream, Clock()), "building", "built"):
        raise RuntimeError
    assert stream.getvalue() == "building\n"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 m 00 s"), (605, "10 m 05 s")],
)
def test_duration(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("count", "expected"), [(0, "0 MB"), (1_400_000, "1 MB"), (5_400_000_000, "5.4 GB")]
)
def test_size(count: int, expected: str) -> None:
    assert size(count) == expected


def test_terminal_gets_a_live_line_that_gives_way_to_the_result() -> None:
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0) as screen, os.fdopen(follower, "w") as terminal:
        progress = progress_on(terminal)
        assert isinstance(progress, TerminalProgress)
        progress.begin("building etcd")
        progress.update("3 of 4 packages [x]", 0.75)
        progress.say("a line that stays")
        progress.end("built etcd")
        shown = ""
        while "built etcd, " not in shown:
            shown += screen.read(65536).decode()
    assert "building etcd" in shown
    assert "3 of 4 packages [x]" in shown
    assert "a line that stays" in shown
    assert shown.rindex("building etcd") < shown.rindex("built etcd, ")


def test_a_long_step_is_shown_whole_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What keeps an installation stands at the end of the step, and must not be cut."""
    monkeypatch.setenv("COLUMNS", "80")
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0) as screen, os.fdopen(follower, "w") as terminal:
        progress = progress_on(terminal)
        progress.begin(f"waiting on {'a-deployment ' * 10}which cannot be pulled")
        progress.end("done")
        shown = ""
        while "done, " not in shown:
            shown += screen.read(65536).decode()
    assert "be pulled" in shown
    assert "0:00:00" in shown


def test_anything_but_a_terminal_gets_lines() -> None:
    assert isinstance(progress_on(io.StringIO()), LineProgress)


def test_import_is_light() -> None:
    """The command line's start-up time depends on it."""
    heavy = ("rich", "aiohttp", "cryptography", "urllib.request", "ssl", "asyncio")
    code = (
        "import sys, quarterdeck.localcluster.binaries\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert answer.stdout == b"[]\n"
