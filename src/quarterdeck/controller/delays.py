"""When each key is due, the earliest first.

A key has at most one delay: the earliest one requested. Pure: the time is passed in.
"""

import heapq
from collections.abc import Hashable
from itertools import count
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

KEPT_CANCELLED = 64
"""The heap is rebuilt only when it has more cancelled delays than this, and more than half."""


class Delays(Generic[K]):
    """The keys that are due later."""

    def __init__(self) -> None:
        self._due: dict[K, tuple[float, int]] = {}  # the delay that counts
        self._heap: list[tuple[float, int, K]] = []  # all delays, cancelled ones too
        self._sequence = count()

    def __len__(self) -> int:
        """How many keys wait."""
        return len(self._due)

    def __contains__(self, key: K) -> bool:
        """Whether the key waits."""
        return key in self._due

    def put(self, key: K, due: float) -> bool:
        """Set when the key is due; False if it is due that early already."""
        known = self._due.get(key)
        if known is not None and known[0] <= due:
            return False
        entry = (due, next(self._sequence))
        self._due[key] = entry
        heapq.heappush(self._heap, (*entry, key))
        if len(self._heap) > 2 * len(self._due) + KEPT_CANCELLED:
            # Each put and drop of a key leaves a cancelled delay in the heap.
            self._heap = [(at, number, key) for key, (at, number) in self._due.items()]
            heapq.heapify(self._heap)
        return True

    def drop(self, key: K) -> None:
        """Cancel the key's delay."""
        self._due.pop(key, None)

    def next(self) -> float | None:
        """When the next key is due; None if no key waits."""
        while self._heap:
            due, number, key = self._heap[0]
            if self._due.get(key) == (due, number):
                return due
            heapq.heappop(self._heap)
        return None

    def take(self, now: float) -> tuple[K, float] | None:
        """Remove the key that is due first; the key and when it was due, None if none is due."""
        due = self.next()
        if due is None or due > now:
            return None
        key = heapq.heappop(self._heap)[2]
        del self._due[key]
        return key, due
