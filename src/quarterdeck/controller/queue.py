"""Which key is reconciled next, and when.

A key is in the queue at most once, and never runs twice at the same time: events that arrive while
it runs cause one more run afterwards. Ready keys run in the order in which they were added. A run
that starts covers everything known so far, so it cancels the key's delay; its result sets the next
delay.

Pure: no tasks and no waiting. The clock is passed in, and `on_ready` wakes the workers (see
`controller.py`). `add` is the hot path of every watch event, so its counters are plain integers
that `metrics.py` reads at a scrape.
"""

import random
from collections import deque
from collections.abc import Callable

from quarterdeck.api.meta import Key
from quarterdeck.backoff import Backoff
from quarterdeck.controller.delays import Delays
from quarterdeck.controller.metrics import Histogram
from quarterdeck.controller.rate import TokenBucket

FAILING_INTERVAL = 1.0
"""A failing key runs about once in this many seconds at most, however many events arrive.

Without this, a reconcile that writes and then fails would be woken by its own write, without any
back-off. It is also the longest delay until the repair of a broken object takes effect.
"""


class Queue:
    """A de-duplicating queue of keys with delays and back-off."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        backoff: Backoff | None = None,
        rate: TokenBucket | None = None,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._backoff = backoff or Backoff()
        # Limits the retries of all keys together: thousands of failed keys are retried within a
        # minute.
        self._rate = rate or TokenBucket(rate=100, burst=500)
        self._dice = dice
        self._ready: deque[Key] = deque()
        self._waiting: dict[Key, float] = {}  # ready, or to run again after this run; since when
        self._running: dict[Key, float] = {}  # since when
        self._failures: dict[Key, int] = {}
        self._held: dict[Key, float] = {}  # failing keys: the earliest time of the next run
        self._delays: Delays[Key] = Delays()
        self.on_ready: Callable[[], None] | None = None
        """Called when a key may be ready, or is due earlier than `next_due` said."""
        self.adds = 0
        self.retries = 0
        self.queue_seconds = Histogram()
        self.work_seconds = Histogram()

    def __len__(self) -> int:
        """How many keys are ready."""
        return len(self._ready)

    @property
    def running(self) -> dict[Key, float]:
        """The keys that run now, and since when; do not change it."""
        return self._running

    def add(self, key: Key) -> None:
        """Run the key as soon as a worker is free; if it runs now, run it once more afterwards."""
        if key in self._waiting:
            return
        now = self._clock()
        if self._held and self._held.get(key, now) > now:
            self._schedule(key, self._held[key])
            return
        self._waiting[key] = now
        self.adds += 1
        if key not in self._running:
            self._make_ready(key)

    def take(self) -> Key | None:
        """Take the next key, which counts as running from now on; None if none is ready."""
        now = self._clock()
        if self._delays:
            self._promote(now)
        if not self._ready:
            return None
        key = self._ready.popleft()
        self.queue_seconds.observe(now - self._waiting.pop(key))
        self._running[key] = now
        self._delays.drop(key)
        return key

    def next_due(self) -> float | None:
        """When the next delayed key is due; None if none is delayed."""
        return self._delays.next()

    def give_up(self, key: Key) -> None:
        """End a run that failed on an invalid object: do not retry it until the object changes."""
        self._failures.pop(key, None)
        self._end(key)
        # The status that reports the fault wakes the key again: delay that run.
        held = self._held[key] = self._clock() + FAILING_INTERVAL
        if self._waiting.pop(key, None) is not None:
            self._schedule(key, held)

    def done(self, key: Key, *, requeue_after: float | None = None) -> float:
        """End a run that succeeded; return the seconds that it took."""
        if self._failures:
            self._failures.pop(key, None)
        if self._held:
            self._held.pop(key, None)
        took = self._end(key)
        if key in self._waiting:
            self._make_ready(key)
        elif requeue_after is not None:
            self._schedule(key, self._clock() + requeue_after)
        return took

    def retry(self, key: Key) -> float:
        """End a run that failed; return the seconds until the retry."""
        self._end(key)
        now = self._clock()
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        own = self._backoff.delay(failures, self._dice)
        delay = max(own, self._rate.reserve(now))
        self._held[key] = now + min(delay, FAILING_INTERVAL)
        self.retries += 1
        self._schedule(key, now + delay)
        if self._waiting.pop(key, None) is not None:
            self._schedule(key, self._held[key])
        return delay

    def _end(self, key: Key) -> float:
        took = self._clock() - self._running.pop(key)
        self.work_seconds.observe(took)
        return took

    def _make_ready(self, key: Key) -> None:
        self._ready.append(key)
        if self.on_ready is not None:
            self.on_ready()

    def _schedule(self, key: Key, due: float) -> None:
        """Run the key at that time, unless it is due earlier already."""
        if self._delays.put(key, due) and self.on_ready is not None:
            self.on_ready()

    def _promote(self, now: float) -> None:
        """Make the keys ready that are due."""
        while (one := self._delays.take(now)) is not None:
            key, due = one
            if key in self._waiting:
                continue
            self._waiting[key] = due
            self.adds += 1
            if key not in self._running:
                self._make_ready(key)
