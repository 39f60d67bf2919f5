"""The table of the log level's latency."""

from bench.log_level import ANSWERED, GOAL, OBSERVED, SENT, _measurement


def test_the_goal_is_judged_by_the_slowest_hundredth_since_the_sending() -> None:
    """The other two rows are shown, and decide nothing."""
    quick, slow = [0.001] * 100, [10.0] * 100
    met = _measurement({SENT: quick, ANSWERED: slow, OBSERVED: slow})
    assert [row.subject for row in met.rows] == [SENT, ANSWERED, OBSERVED]
    assert [verdict.met for verdict in met.verdicts] == [True]
    late = [*quick[2:], GOAL * 2, GOAL * 2]
    missed = _measurement({SENT: late, ANSWERED: quick, OBSERVED: quick})
    assert [verdict.met for verdict in missed.verdicts] == [False]
