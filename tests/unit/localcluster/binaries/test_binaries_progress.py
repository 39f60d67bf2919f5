"""Progress as lines, with a clock of the test's own."""

import io

import pytest

from quarterdeck.localcluster.binaries.progress import LineProgress, duration, size, step


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
