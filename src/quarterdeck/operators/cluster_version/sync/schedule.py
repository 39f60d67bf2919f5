"""Which manifest is next, given the graph and what came of the others so far. Pure.

A step is a manifest, by its place in the graph. While updating, a step begins when the one before
it in its node is done, and a node when all are that it comes after; so a step that is not done
holds back what depends on it, and nothing else. In the other modes a step only waits until the
one before it was tried, so that all faults are seen; what comes after a Job still waits for it.

A step that fails is tried again after a growing time, one that waits is looked at from time to
time, and both at once when their object changes. A done step is looked at again when its object
changes, whatever else is under way: what is applied is kept so. Only a Job is not, which runs once.
What depends on a step that was done once is not held back when it is no more. A step whose object
somebody else keeps changing back is written at once a few times, and then at a slow pace. Time and
dice are passed in.
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
LOOK_AGAIN = 10.0
"""Seconds after which something that is waited for is looked at without being told."""
HOLD = 1.0
"""Seconds that a step which failed is not tried again, however often its object changes."""
WRITES_AT_ONCE, WRITE_EVERY = 10, 10.0
"""How often one object is written without a pause, and the seconds between two writes then."""


class Schedule:
    """The steps of one run: which may begin, which rest, and what came of each."""

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
        """What came of each step that was tried, the last time."""
        self.undone: set[int] = set(range(len(self._node_of)))
        """The steps that were not tried yet, or not found done the last time."""
        self.troubled: dict[int, Outcome] = {}
        """The outcomes that have something to say."""
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
        """How many steps there are."""
        return len(self._node_of)

    @property
    def all_done(self) -> bool:
        """Whether the last look at every step found it done, and none is under way.

        A done step whose object went is under way again, and may have to be waited for.
        """
        return not self.undone and not self.running

    @property
    def all_tried(self) -> bool:
        """Whether every step was tried, and none is under way."""
        return len(self.outcomes) == len(self) and not self.running

    def take(self, now: float) -> int | None:
        """The next step, which now runs, in file order; None when none may begin."""
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
        """When the next resting step is to be tried; None when none rests."""
        return self._resting.next()

    def record(self, step: int, outcome: Outcome, now: float, *, wrote: bool = False) -> float:
        """Take what came of a step that ran; for how long it is held back for writing too often."""
        self.running.remove(step)
        self._remember(step, outcome)
        if isinstance(outcome, Failed):
            failures = self._failures[step] = self._failures.get(step, 0) + 1
            delay = self._backoff.delay(failures, self._dice)
            self._held[step] = now + min(delay, HOLD)
            self._rest(step, now + delay)
        else:
            self._failures.pop(step, None)
            self._held.pop(step, None)
            if isinstance(outcome, Done):
                self._finish(step)
            else:
                self._rest(step, now + LOOK_AGAIN)
        if isinstance(outcome, Done) or not self._strict:
            self._release_next(step)
        pause = self._pause_after_write(step, now) if wrote else 0.0
        if step in self._again:
            self._again.remove(step)
            self.wake(step, now)
        return pause

    def wake(self, step: int, now: float) -> bool:
        """Look at a step as soon as may be: its object has changed; whether there is need to."""
        if step in self.running:
            self._again.add(step)
            return False
        is_over = step in self._once and step in self._finished
        if step not in self._released or is_over:
            return False
        self._rest(step, max(now, self._held.get(step, now)))
        return True

    def begin_pass(self, is_settled: Callable[[int], bool]) -> None:
        """Look once more at every step that is not settled and not under way."""
        for step in self._released - self.running:
            if not is_settled(step):
                self._make_ready(step)

    def _pause_after_write(self, step: int, now: float) -> float:
        pace = self._paces.get(step)
        if pace is None:
            pace = TokenBucket(rate=1 / WRITE_EVERY, burst=WRITES_AT_ONCE)
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
        """Try the step then, unless it is to be tried earlier anyway."""
        if step not in self._is_ready:
            self._resting.put(step, due)
