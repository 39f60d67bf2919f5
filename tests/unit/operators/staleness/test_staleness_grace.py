"""Which servers postpone a verdict, and for how long."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.kube import ApiError, ConnectionFailed, Forbidden, KubeError, TooManyRequests
from quarterdeck.kube.errors import Status
from quarterdeck.operators.staleness.grace import PULSE_PERIOD, STANDSTILL_LIMIT, Grace
from quarterdeck.operators.staleness.pulse import refuses_all_writes

SECONDS = 30.0
PULSES = int(SECONDS / PULSE_PERIOD)


class Served:
    """A grace period, and a server that accepts a write at each pulse, or refuses it."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.grace = Grace(seconds, monotonic=0, wall=0)
        self.clock = 0.0
        self.accepted: list[float] = []

    def serve(self, answers: Iterable[bool]) -> None:
        """Let a pulse pass for each answer."""
        for accepts in answers:
            self.clock += PULSE_PERIOD
            if accepts:
                self.accepted.append(self.clock)
                self.grace.accepted(self.clock, self.clock)
            else:
                self.grace.refused(self.clock)

    def idle(self, pulses: int) -> None:
        """Let pulses pass while no verdict is due."""
        for _ in range(pulses):
            self.clock += PULSE_PERIOD
            self.grace.pulse(self.clock, self.clock)

    @property
    def left(self) -> float:
        return self.grace.left(self.clock, self.clock, verdict=True)


def test_a_verdict_needs_a_grace_period_of_accepted_writes() -> None:
    """However long nothing was due before; another write needs none."""
    server = Served()
    server.idle(100)
    assert server.grace.left(server.clock, server.clock) == 0
    assert server.left == SECONDS
    server.serve([True] * PULSES)
    assert server.left > 0
    server.serve([True])
    assert server.left == 0
    server.idle(1)
    assert server.left == SECONDS


def test_refused_writes_begin_it_again() -> None:
    server = Served()
    server.serve([True] * 5 + [False] * PULSES * 2)
    assert server.left == SECONDS
    assert server.grace.silent_for(server.clock) == SECONDS * 2
    server.serve([True])
    assert server.left == SECONDS
    assert server.grace.refused_for(server.clock) == 0
    server.serve([True] * PULSES)
    assert server.left == 0


def test_without_a_grace_period_nothing_is_postponed() -> None:
    server = Served(0)
    server.idle(3)
    assert server.left == 0
    server.clock += 100
    assert server.left == 0


@pytest.mark.parametrize("failures", [1, 2, 3, 6, 12])
def test_a_server_that_fails_now_and_then_postpones_it_for_a_time_only(failures: int) -> None:
    """An operator that retries gets through as often as the checker does."""
    server = Served()
    server.serve(([False] * failures + [True]) * (PULSES + 1))
    assert server.left == 0


def test_a_server_that_seldom_accepts_a_write_is_away() -> None:
    server = Served()
    server.serve(([False] * (PULSES + 1) + [True]) * 50)
    assert server.left > 0


def test_answers_that_come_at_once_count_once() -> None:
    """A server that hung answers all that it was asked meanwhile."""
    server = Served()
    server.serve([True])
    server.clock += SECONDS + 1
    for _ in range(100):
        server.grace.accepted(server.clock, server.clock)
    assert server.left == SECONDS


def test_a_write_that_is_refused_to_an_operator_starts_the_waiting_anew() -> None:
    server = Served()
    server.serve([False] * 10)
    assert server.grace.refused_for(server.clock) == 9 * PULSE_PERIOD
    server.grace.refused(server.clock, again=True)
    assert server.grace.refused_for(server.clock) == 0


def test_a_refused_verdict_needs_a_grace_period_of_its_own() -> None:
    """Our own writes may be refused for another reason, and so hide that all are."""
    server = Served()
    server.serve([True] * PULSES * 2)
    assert server.left == 0
    server.grace.refused(server.clock, again=True)
    assert server.left == SECONDS
    server.serve([True] * PULSES)
    assert server.left > 0
    server.serve([True])
    assert server.left == 0


def test_a_server_that_is_back_after_long_gets_a_grace_period() -> None:
    """Although a challenge stood all the time, and a verdict was to be tried all the same."""
    server = Served()
    server.serve([True] * PULSES * 2)
    server.serve([False] * PULSES * 10)
    assert server.grace.refused_for(server.clock) > SECONDS * 9
    server.serve([True])
    assert server.grace.refused_for(server.clock) == 0
    assert server.left == SECONDS


def test_writes_before_the_challenge_do_not_count_for_it() -> None:
    """Another operator, to which nothing can be written, may have been asked all the time."""
    server = Served()
    server.serve([True] * PULSES * 10)
    asked = server.clock
    server.serve([True] * 2 + [False] * 3 + [True])

    def left() -> float:
        return server.grace.left(server.clock, server.clock, verdict=True, challenged=asked)

    assert server.left == 0, "the other operator has had its time"
    assert left() == SECONDS
    server.serve([True] * PULSES)
    assert left() == 0


DAY = 24 * 3600


@pytest.mark.parametrize("standstill", [5.5, 6.0, 20.0, 29.0])
@pytest.mark.parametrize("period", [6.0, 22.0, 28.0, 30.5, 36.0, 40.0])
def test_standstills_again_and_again_do_not_hide_a_dead_operator(
    standstill: float, period: float
) -> None:
    """For a day, after each of them: the challenge may be written soon."""
    grace, clock, last, longest = Grace(SECONDS, 0, 0), 0.0, 0.0, 0.0
    while clock < DAY:
        worked = 0.0
        while worked < period:
            worked += PULSE_PERIOD
            clock += PULSE_PERIOD
            grace.pulse(clock, clock)
            if grace.left(clock, clock) == 0:
                longest, last = max(longest, clock - last), clock
        clock += standstill
        grace.pulse(clock, clock)
    assert longest < 6 * (SECONDS + standstill)


@pytest.mark.parametrize("period", [6.0, 22.0, 26.0, 32.0, 36.0, 40.0])
@pytest.mark.parametrize("lost", [2.0, 8.0, 20.0])
def test_a_watch_that_is_lost_again_and_again_does_not_hide_a_dead_operator(
    lost: float, period: float
) -> None:
    grace, clock, last, longest = Grace(SECONDS, 0, 0), 0.0, 0.0, 0.0
    while clock < DAY:
        begin, reached = clock, clock
        while clock < begin + lost + period:
            clock += PULSE_PERIOD
            reached = clock if clock <= begin + lost else reached
            grace.pulse(clock, clock, reached)
            if reached < clock and grace.left(clock, clock, reached) == 0:
                longest, last = max(longest, clock - last), clock
    assert longest < 6 * (SECONDS + lost)


def test_after_a_long_outage_nobody_is_asked_for_a_grace_period() -> None:
    grace = Grace(SECONDS, 0, 0)
    for second in range(2, 400, 2):
        grace.pulse(second, second, second if 200 < second < 300 else 0)
    assert grace.left(400, 400, 300) == 0
    for second in range(400, 500, 2):
        grace.pulse(second, second, second)
    for second in range(500, 530, 2):
        grace.pulse(second, second, 499)
        assert grace.left(second, second, 499) > 0
    assert grace.left(530, 530, 499) == 0


@given(st.lists(st.booleans(), max_size=200), st.sampled_from([4.0, 10.0, 30.0]))
def test_whatever_a_server_does_a_verdict_follows_enough_accepted_writes(
    answers: list[bool], seconds: float
) -> None:
    """And a server that works again lets it come after one grace period."""
    server = Served(seconds)
    for answer in answers:
        server.serve([answer])
        if server.left == 0:
            run = _since_the_last_gap(server.accepted, max(seconds, STANDSTILL_LIMIT))
            assert server.clock - run[0] >= seconds
            assert len(run) >= seconds // STANDSTILL_LIMIT
    server.serve([True] * (int(seconds / PULSE_PERIOD) + 1))
    assert server.left == 0


def _since_the_last_gap(times: list[float], gap: float) -> list[float]:
    """The last of these times between which no gap is longer."""
    run = times[-1:]
    for time in reversed(times[:-1]):
        if run[0] - time > gap:
            break
        run.insert(0, time)
    return run


def _status(code: int, message: str = "") -> Status:
    return Status(code=code, message=message)


@pytest.mark.parametrize(
    ("error", "all_writes"),
    [
        (ApiError("PATCH", "/", _status(500, "etcdserver: mvcc: database space exceeded")), True),
        (ApiError("PATCH", "/", _status(503)), True),
        (ApiError("PATCH", "/", _status(504)), True),
        (TooManyRequests("PATCH", "/", _status(429)), True),
        (ConnectionFailed("PATCH", "/", "reset", sent=True), True),
        (ApiError("PATCH", "/", _status(500, "failed calling webhook x: refused")), False),
        (Forbidden("PATCH", "/", _status(403)), False),
        (ApiError("PATCH", "/", _status(422)), False),
    ],
)
def test_which_refusal_is_of_all_writes(error: KubeError, all_writes: bool) -> None:
    assert refuses_all_writes(error) is all_writes
