"""The count of lost lines in any order of requests, reloads and canaries: never too high.

At the end, it is exact.

Lines keep their order on the way of each worker. Those of an old worker may be overtaken by a
canary, and arrive within the time after which a missing line is late.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from quarterdeck.router.loss import LATE_AFTER, RequestCounts, Tally


class Worker:
    """What a worker counts, and how many of its lines are on their way."""

    def __init__(self) -> None:
        self.begun = self.open = self.on_the_way = 0

    @property
    def counts(self) -> RequestCounts:
        return RequestCounts(self.begun, self.open, self.open)


class Lines(RuleBasedStateMachine):
    """A router with its workers and its sidecar."""

    def __init__(self) -> None:
        super().__init__()
        self.workers = {1: Worker()}
        self.tally, self.now, self.lost = Tally(), 0.0, 0
        # rsyslog began before the router, which does not know of its lines.
        self.received, self.started = 1000, 0
        self.was_overtaken = False
        """Whether a canary has overtaken lines that were not held then."""
        self.look(0, is_held=True)

    @property
    def newest(self) -> int:
        return max(self.workers)

    @property
    def old(self) -> list[int]:
        return sorted(self.workers.keys() - {self.newest})

    @rule(number=st.integers(1, 3))
    def begin(self, number: int) -> None:
        self.workers[self.newest].begun += number
        self.workers[self.newest].open += number

    @rule(at=st.integers(0, 3), is_lost=st.booleans())
    def end(self, at: int, is_lost: bool) -> None:
        """A request ends. Its line is on its way, or lost, as in a ring that is full."""
        worker = self.workers[sorted(self.workers)[at % len(self.workers)]]
        if worker.open:
            worker.open -= 1
            worker.on_the_way += not is_lost
            self.lost += is_lost

    @rule(at=st.integers(0, 3), most=st.integers(1, 5))
    def arrive(self, at: int, most: int) -> None:
        self._deliver(sorted(self.workers)[at % len(self.workers)], most)

    @precondition(lambda self: len(self.workers) < 4)
    @rule()
    def reload(self) -> None:
        self.workers[self.newest + 1] = Worker()

    @precondition(lambda self: self.old)
    @rule(at=st.integers(0, 3))
    def an_old_worker_ends(self, at: int) -> None:
        """It is asked until nobody is connected any more, and its last lines are sent."""
        pid = self.old[at % len(self.old)]
        worker = self.workers[pid]
        if not worker.open:
            self._deliver(pid, worker.on_the_way)
            self.tally = self.tally.asked({pid: worker.counts}, {*self.tally.workers, pid})
            del self.workers[pid]

    @rule()
    def rsyslog_starts_again(self) -> None:
        """Without a line in it, and known: what it had counted was said with a canary."""
        self.look(0, is_held=True)
        self.received, self.started = 0, self.started + 1

    @rule(meanwhile=st.integers(0, 2), is_held=st.booleans())
    def look(self, meanwhile: int, is_held: bool) -> None:
        """A canary of the newest worker; requests may begin and end between question and canary."""
        self._ask()
        worker = self.workers[self.newest]
        worker.begun += meanwhile
        worker.on_the_way += meanwhile
        self._deliver(self.newest, worker.on_the_way)
        of_old = sum(self.workers[pid].on_the_way for pid in self.old)
        self.was_overtaken |= bool(of_old) and not is_held
        self.tally = self.tally.heard(
            self.received, f"start {self.started}", self.now, of_old if is_held else 0
        )
        self._ask()
        self.tally = self.tally.settled()

    @rule(is_away=st.booleans())
    def time_passes(self, is_away: bool) -> None:
        """While rsyslog is away, only lines that were held at each canary may take longer."""
        if not is_away or self.was_overtaken:
            for pid, worker in self.workers.items():
                self._deliver(pid, worker.on_the_way)
            self.was_overtaken = False
        self.now += LATE_AFTER + 1

    @invariant()
    def no_line_is_called_lost_that_is_not(self) -> None:
        assert self.tally.lost <= self.lost

    def teardown(self) -> None:
        """At last every line has arrived, or is known to be lost."""
        for worker in self.workers.values():
            worker.on_the_way += worker.open
            worker.open = 0
        for _ in range(2):
            self.time_passes(is_away=False)
            self.look(0, is_held=True)
        assert self.tally.lost == self.lost
        assert self.tally.requests == self.tally.arrived + self.tally.lost

    def _ask(self) -> None:
        answers = {pid: worker.counts for pid, worker in self.workers.items()}
        self.tally = self.tally.asked(answers, answers.keys())

    def _deliver(self, pid: int, most: int) -> None:
        number = min(most, self.workers[pid].on_the_way)
        self.workers[pid].on_the_way -= number
        self.received += number


TestLines = Lines.TestCase
TestLines.settings = settings(max_examples=200, stateful_step_count=40)
