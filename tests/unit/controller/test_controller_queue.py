"""The work queue: nothing lost, nothing twice at once, fair, with delays and back-off."""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quarterdeck.api.meta import Key
from quarterdeck.controller.queue import FAILING_INTERVAL, Queue
from quarterdeck.controller.rate import TokenBucket
from quarterdeck.kube import Backoff

A, B, C = (Key("ns", name) for name in "abc")


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make_queue(clock: Callable[[], float], **settings: float) -> Queue:
    return Queue(
        clock=clock,
        backoff=Backoff(base=settings.get("base", 1.0), limit=settings.get("limit", 60.0)),
        rate=TokenBucket(rate=settings.get("rate", 1e6), burst=int(settings.get("burst", 1e6))),
        dice=lambda: 0.0,
    )


def drain(queue: Queue) -> list[Key]:
    taken = []
    while (key := queue.take()) is not None:
        taken.append(key)
    return taken


def test_keys_are_taken_once_and_in_the_order_they_came(clock: Clock) -> None:
    queue = make_queue(clock)
    for key in (A, B, A, C, B):
        queue.add(key)
    assert drain(queue) == [A, B, C]
    assert queue.adds == 3


def test_a_key_that_is_added_while_it_runs_runs_once_more_afterwards(clock: Clock) -> None:
    queue = make_queue(clock)
    queue.add(A)
    assert queue.take() == A
    queue.add(A)
    queue.add(A)
    assert queue.take() is None
    queue.done(A)
    assert drain(queue) == [A]


def test_a_busy_key_does_not_keep_others_from_running(clock: Clock) -> None:
    """A key that is added again and again goes behind those that wait."""
    queue = make_queue(clock)
    queue.add(A)
    queue.take()
    queue.add(A)
    queue.add(B)
    queue.done(A)
    assert drain(queue) == [B, A]


def test_a_delayed_key_runs_when_it_is_due(clock: Clock) -> None:
    queue = make_queue(clock)
    queue.add(A)
    queue.take()
    queue.done(A, requeue_after=30)
    assert queue.next_due() == clock.now + 30
    clock.now += 29.9
    assert queue.take() is None
    clock.now += 0.1
    assert queue.take() == A


def test_a_run_cancels_the_delay_of_its_key(clock: Clock) -> None:
    """The run that an event starts decides anew; the old delay would be one run too many."""
    queue = make_queue(clock)
    queue.add(A)
    queue.take()
    queue.done(A, requeue_after=30)
    queue.add(A)
    assert queue.take() == A
    queue.done(A)
    clock.now += 31
    assert queue.take() is None
    assert queue.next_due() is None


def test_failures_double_the_delay_up_to_the_limit_and_success_forgets_them(clock: Clock) -> None:
    queue = make_queue(clock, limit=5)
    delays = []
    queue.add(A)
    for _ in range(5):
        assert queue.take() == A
        delays.append(queue.retry(A))
        clock.now += delays[-1]
    assert delays == [1, 2, 4, 5, 5]
    queue.take()
    queue.done(A)
    queue.add(A)
    queue.take()
    assert queue.retry(A) == 1


def test_a_failing_key_is_not_run_in_a_hot_loop_by_events(clock: Clock) -> None:
    """Events during and after a failing run wait for the hold, not for the whole back-off."""
    queue = make_queue(clock, base=60)
    queue.add(A)
    queue.take()
    queue.add(A)
    queue.retry(A)
    queue.add(A)
    assert queue.take() is None
    clock.now += FAILING_INTERVAL
    assert queue.take() == A


def test_events_for_a_failing_key_do_not_delay_a_shorter_back_off(clock: Clock) -> None:
    queue = make_queue(clock, base=0.01)
    queue.add(A)
    queue.take()
    queue.add(A)
    queue.retry(A)
    clock.now += 0.01
    assert queue.take() == A


def test_retries_over_all_keys_are_limited_by_the_global_rate(clock: Clock) -> None:
    queue = make_queue(clock, base=0.001, rate=2, burst=2)
    delays = []
    for key in (A, B, C, Key("ns", "d")):
        queue.add(key)
        queue.take()
        delays.append(queue.retry(key))
    assert delays == [0.001, 0.001, 0.5, 1.0]


def test_cancelled_delays_do_not_pile_up(clock: Clock) -> None:
    """A key that runs often with a long delay leaves a bounded heap."""
    queue = make_queue(clock)
    for _ in range(10_000):
        queue.add(A)
        queue.take()
        queue.done(A, requeue_after=3600)
    assert len(queue._delays._heap) < 100


def test_whoever_waits_is_told_of_a_key_and_of_an_earlier_delay(clock: Clock) -> None:
    queue = make_queue(clock, base=60)
    told: list[float | None] = []
    queue.on_ready = lambda: told.append(queue.next_due())
    queue.add(A)
    assert told == [None]
    queue.take()
    queue.retry(A)
    queue.add(A)
    assert told[-1] == clock.now + FAILING_INTERVAL


def test_how_long_keys_waited_and_ran_is_counted(clock: Clock) -> None:
    queue = make_queue(clock)
    queue.add(A)
    clock.now += 2
    queue.take()
    assert queue.running == {A: clock.now}
    clock.now += 3
    assert queue.done(A) == 3
    assert (queue.queue_seconds.total, queue.work_seconds.total) == (2, 3)


class AnyUse(RuleBasedStateMachine):
    """Whatever is done to the queue: no key is lost, none runs twice at once, order is fair."""

    keys = st.sampled_from([Key("ns", name) for name in "abcde"])

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.queue = make_queue(self.clock, limit=8)
        self.running: set[Key] = set()
        self.owed: dict[Key, float] = {}  # the latest time by which the key has to be ready
        self.told = False
        self.queue.on_ready = self.tell

    def tell(self) -> None:
        self.told = True

    def owe(self, key: Key, by: float) -> None:
        self.owed[key] = min(by, self.owed.get(key, by))

    @rule(key=keys)
    def add(self, key: Key) -> None:
        self.told = False
        self.queue.add(key)
        if key not in self.owed and key not in self.running:
            assert self.told
        self.owe(key, self.clock.now + FAILING_INTERVAL)

    @rule()
    def take(self) -> None:
        key = self.queue.take()
        if key is not None:
            assert key not in self.running, "runs twice at once"
            assert key in self.owed, "runs though nobody asked"
            del self.owed[key]
            self.running.add(key)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), after=st.none() | st.floats(0, 10))
    def done(self, data: st.DataObject, after: float | None) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.running.remove(key)
        self.queue.done(key, requeue_after=after)
        if after is not None:
            self.owe(key, self.clock.now + after)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.running.remove(key)
        again = key in self.owed
        delay = self.queue.retry(key)
        self.owed[key] = self.clock.now + (min(delay, FAILING_INTERVAL) if again else delay)

    @rule(seconds=st.floats(0, 5))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def due_keys_are_ready_or_announced(self) -> None:
        due = self.queue.next_due()
        idle = {key for key in self.owed if key not in self.running}
        assert bool(idle) == (len(self.queue) > 0 or due is not None) or self.running

    def teardown(self) -> None:
        """After all runs end and time has passed, exactly what was owed has run."""
        for key in sorted(self.running):
            self.queue.done(key)
        self.clock.now += 100
        assert sorted(drain(self.queue)) == sorted(self.owed)


TestAnyUse = AnyUse.TestCase


def test_a_key_that_is_given_up_is_not_run_in_a_hot_loop_by_what_it_wrote(clock: Clock) -> None:
    """Its fault is written on its object, and that wakes the key, while it runs or just after."""
    queue = Queue(clock=clock)
    queue.add(A)
    assert queue.take() == A
    queue.add(A)
    queue.give_up(A)
    assert queue.take() is None
    clock.now += FAILING_INTERVAL
    assert queue.take() == A
    queue.give_up(A)
    queue.add(A)
    assert queue.take() is None
    assert queue.next_due() == clock.now + FAILING_INTERVAL
    clock.now += FAILING_INTERVAL
    assert queue.take() == A
    queue.done(A)
    queue.add(A)
    assert queue.take() == A, "what is well is held no more"


def test_a_key_that_is_given_up_is_not_tried_again_by_itself(clock: Clock) -> None:
    queue = Queue(clock=clock)
    queue.add(A)
    queue.take()
    queue.give_up(A)
    assert queue.next_due() is None
