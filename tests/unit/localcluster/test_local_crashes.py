"""When a crashed component is started again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.localcluster.crashes import BACKOFF, CrashHistory, crashed, started


@pytest.mark.parametrize(
    ("crashes", "seconds"),
    [
        pytest.param(1, 0.5, id="the first restart is quick"),
        pytest.param(2, 1.0, id="the second waits twice as long"),
        pytest.param(6, 16.0, id="each waits twice as long as the one before"),
        pytest.param(7, BACKOFF.maximum, id="but no longer than the longest"),
        pytest.param(10_000, BACKOFF.maximum, id="however often it crashes"),
    ],
)
def test_delay(crashes: int, seconds: float) -> None:
    assert BACKOFF.delay(crashes) == seconds


def test_a_long_run_forgives_earlier_crashes() -> None:
    history = started(crashed(started(crashed(CrashHistory(), 0), 1), 2), 3)
    assert history.in_a_row == 2
    assert crashed(history, 3 + BACKOFF.reset).in_a_row == 1
    assert crashed(history, 3 + BACKOFF.reset - 1).in_a_row == 3


@given(st.lists(st.floats(min_value=0, max_value=120), max_size=30))
def test_every_crash_gets_a_restart_within_the_longest_delay(runs: list[float]) -> None:
    """After each crash a restart is due, never in the past; restarts are counted."""
    now, history = 0.0, CrashHistory()
    for run in runs:
        now += run
        history = crashed(history, now)
        assert history.due_at is not None
        assert now < history.due_at <= now + BACKOFF.maximum
        now = history.due_at
        history = started(history, now)
        assert history.due_at is None
    assert history.restarts == len(runs)
