"""Limits how often somebody can try to log in. Pure: the time is given."""

from collections import deque

ATTEMPTS = 10
PERIOD = 60.0
EVERYBODY = 120
"""The most attempts in a period from all addresses together."""


class LogInLimit:
    """Counts the attempts to log in, of each address and of all together."""

    def __init__(self) -> None:
        self._attempts: dict[str, deque[float]] = {}
        self._all: deque[float] = deque()

    def wait(self, address: str, now: float) -> float:
        """Seconds until this address may try again; 0 if it may now, and the attempt counts."""
        own = self._attempts.get(address) or deque()
        waits = (_wait(own, ATTEMPTS, now), _wait(self._all, EVERYBODY, now))
        if longest := max(waits):
            return longest
        self._forget_old(now)
        own.append(now)
        self._all.append(now)
        self._attempts[address] = own
        return 0.0

    def __len__(self) -> int:
        """How many addresses are remembered; never more than `EVERYBODY`."""
        return len(self._attempts)

    def succeeded(self, address: str) -> None:
        """Forget the attempts of an address that has logged in; they count for all together."""
        self._attempts.pop(address, None)

    def _forget_old(self, now: float) -> None:
        self._attempts = {
            address: times
            for address, times in self._attempts.items()
            if times and now - times[-1] < PERIOD
        }


def _wait(times: deque[float], most: int, now: float) -> float:
    while times and now - times[0] >= PERIOD:
        times.popleft()
    return 0.0 if len(times) < most else PERIOD - (now - times[0])
