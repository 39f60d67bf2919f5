"""Chooses the next manifest, given the graph and the outcomes so far. Pure.

A step is the index of a manifest in the graph. While updating, a step begins when the step before
it in its node is done, and a node begins when all nodes before it are done. So a step that is not
done delays only the steps that depend on it. In the other modes a step begins when the step before
it was tried, so that all faults show; only a Job must be done before the next step.

A failed step is retried with back-off. A waiting step is looked at again every `RECHECK_PERIOD`.
Both run at once when their object changes. A done step runs again when its object changes, so that
drift is reverted; a Job does not, because it runs once. If a done step fails later, the steps that
depend on it still continue. If somebody else keeps changing an object back, its step writes at once
a few times, and then at a slow pace. Clock and random numbers are passed in.
"""

import heapq
import random
from collections.abc import Callable

from quarterdeck.controller import Backoff
from quarterdeck.controller.delays import Delays
from quarterdeck.controller.rate import TokenBucket
from quarterdeck.operators.cluster_version.sync.progress import Done, Failed, Outcome
from quarterdeck.payload.graph import Graph, Mode, is_job

BACKOFF = Backoff(base=0.1, limit=30.0)
RECHECK_PERIOD = 10.0
"""Seconds after which a waiting step is looked at again without a change."""
FAILURE_HOLD = 1.0
"""The most seconds for which a failed step ignores changes of its object."""
WRITES_AT_ONCE, WRITE_PERIOD = 10, 10.0
"""How many writes of one object need no pause, and the seconds between two writes after that."""


class Schedule:
    """The steps of one run: which may begin, which wait, and their outcomes."""

    def __init__(
        self, graph: Graph, *, backoff: Backoff = BACKOFF, dice: Callable[[], float] = random.random
    ) -> None:
        self._strict = graph.mode is Mode.UPDATING
        self._once = {step for step, one in enumerate(graph.manifests) if is_job(one)}
        self._backoff = backoff
        self._dice = dice
        self._node_of = [node.number for node in graph.nodes for _ in node.manifests]
        self._undone = [len(node.manifests) for node in graph.nodes]
        self._blockers = [len(node.after) for node in graph.nodes]
        self._dependants: list[list[int]] = [[] for _ in graph.nodes]
        for node in graph.nodes:
            for before in node.after:
                self._dependants[before].append(node.number)
        self._first: dict[int, int] = {}
        for step, number in enumerate(self._node_of):
            self._first.setdefault(number, step)
        self.outcomes: dict[int, Outcome] = {}
        """The last outcome of each step that was tried."""
        self.undone: set[int] = set(range(len(self._node_of)))
        """The steps that were not tried yet, or whose last outcome is not done."""
        self.troubled: dict[int, Outcome] = {}
        """The outcomes with a reason."""
        self.running: set[int] = set()
        self._released: set[int] = set()
        self._finished: set[int] = set()
        self._ready: list[int] = []
        self._is_ready: set[int] = set()
        self._again: set[int] = set()
        self._resting: Delays[int] = Delays()
        self._failures: dict[int, int] = {}
        self._held: dict[int, float] = {}
        self._paces: dict[int, TokenBucket] = {}
        for node in graph.nodes:
            if not node.after:
                self._release(self._first[node.number])

    def __len__(self) -> int:
        """The number of steps."""
        return len(self._node_of)

    @property
    def all_done(self) -> bool:
        """Whether the last outcome of every step is done, and no step runs.

        A done step whose object was deleted runs again.
        """
        return not self.undone and not self.running

    @property
    def all_tried(self) -> bool:
        """Whether every step was tried, and no step runs."""
        return len(self.outcomes) == len(self) and not self.running

    def take(self, now: float) -> int | None:
        """Start the next step in file order, and return it; None if no step may begin."""
        while (due := self._resting.take(now)) is not None:
            self._make_ready(due[0])
        if not self._ready:
            return None
        step = heapq.heappop(self._ready)
        self._is_ready.remove(step)
        self._resting.drop(step)
        self.running.add(step)
        return step

    def next_due(self) -> float | None:
        """When the next delayed step is due; None if no step is delayed."""
        return self._resting.next()

    def record(self, step: int, outcome: Outcome, now: float, *, wrote: bool = False) -> float:
        """Record the outcome of a running step, and return its pause for writing too often."""
        self.running.remove(step)
        self._remember(step, outcome)
        if isinstance(outcome, Failed):
            failures = self._failures[step] = self._failures.get(step, 0) + 1
            delay = self._backoff.delay(failures, self._dice)
            self._held[step] = now + min(delay, FAILURE_HOLD)
            self._rest(step, now + delay)
        else:
            self._failures.pop(step, None)
            self._held.pop(step, None)
            if isinstance(outcome, Done):
                self._finish(step)
            else:
                self._rest(step, now + RECHECK_PERIOD)
        if isinstance(outcome, Done) or not self._strict:
            self._release_next(step)
        pause = self._pause_after_write(step, now) if wrote else 0.0
        if step in self._again:
            self._again.remove(step)
            self.wake(step, now)
        return pause

    def wake(self, step: int, now: float) -> bool:
        """Schedule a step whose object has changed; True if it is scheduled."""
        if step in self.running:
            self._again.add(step)
            return False
        is_over = step in self._once and step in self._finished
        if step not in self._released or is_over:
            return False
        self._rest(step, max(now, self._held.get(step, now)))
        return True

    def begin_pass(self, is_settled: Callable[[int], bool]) -> None:
        """Schedule every step that is not settled and does not run."""
        for step in self._released - self.running:
            if not is_settled(step):
                self._make_ready(step)

    def _pause_after_write(self, step: int, now: float) -> float:
        pace = self._paces.get(step)
        if pace is None:
            pace = TokenBucket(rate=1 / WRITE_PERIOD, burst=WRITES_AT_ONCE)
            self._paces[step] = pace
        pause = pace.reserve(now)
        if pause:
            self._held[step] = max(self._held.get(step, now), now + pause)
        return pause

    def _remember(self, step: int, outcome: Outcome) -> None:
        self.outcomes[step] = outcome
        if isinstance(outcome, Done):
            self.undone.discard(step)
        else:
            self.undone.add(step)
        if outcome.reason:
            self.troubled[step] = outcome
        else:
            self.troubled.pop(step, None)

    def _finish(self, step: int) -> None:
        if step in self._finished:
            return
        self._finished.add(step)
        node = self._node_of[step]
        self._undone[node] -= 1
        if self._undone[node]:
            return
        for dependant in self._dependants[node]:
            self._blockers[dependant] -= 1
            if not self._blockers[dependant]:
                self._release(self._first[dependant])

    def _release_next(self, step: int) -> None:
        following = step + 1
        if following < len(self) and self._node_of[following] == self._node_of[step]:
            self._release(following)

    def _release(self, step: int) -> None:
        if step not in self._released:
            self._released.add(step)
            self._make_ready(step)

    def _make_ready(self, step: int) -> None:
        if step not in self._is_ready:
            self._is_ready.add(step)
            heapq.heappush(self._ready, step)

    def _rest(self, step: int, due: float) -> None:
        """Schedule the step for this time, unless it is ready now."""
        if step not in self._is_ready:
            self._resting.put(step, due)
