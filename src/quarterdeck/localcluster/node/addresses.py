"""Addresses for pods: each agent has a /24 of loopback, each pod an address in it.

All of 127.0.0.0/8 is this machine. Two agents must not use the same network, also if they belong to
different users. So each agent holds an abstract Unix socket with the network's name; the kernel
closes it when the process ends.
"""

import errno
import hashlib
import socket
from collections import deque
from collections.abc import Iterator

HOSTS = range(1, 255)


class NoAddressError(Exception):
    """All addresses are taken."""


class Network:
    """A /24 that only this process uses; it assigns addresses to holders by name."""

    def __init__(self, prefix: str, lock: socket.socket) -> None:
        self.prefix = prefix
        self._lock = lock
        self._given: dict[str, str] = {}
        # The address that is unused for the longest time comes first.
        self._free = deque(f"{prefix}.{host}" for host in HOSTS)

    def address(self, holder: str, wanted: str = "") -> str:
        """Assign an address to the holder: its present one, the wanted one if free, or another."""
        if holder not in self._given:
            if not self._free:
                raise NoAddressError(f"all {len(HOSTS)} addresses of {self.prefix}.0/24 are taken")
            if wanted in self._free:
                self._free.remove(wanted)
            else:
                wanted = self._free.popleft()
            self._given[holder] = wanted
        return self._given[holder]

    def release(self, holder: str) -> None:
        """Take the holder's address back."""
        if holder in self._given:
            self._free.append(self._given.pop(holder))

    def close(self) -> None:
        """Release the network for other agents."""
        self._lock.close()


def lock_network(seed: str) -> Network:
    """Lock a free network, and return it; the same seed gets the same one if it is free."""
    for prefix in _candidates(seed):
        lock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            lock.bind(f"\0quarterdeck/node/{prefix}")
        except OSError as error:
            lock.close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return Network(prefix, lock)
    raise NoAddressError("all networks in 127.1.0.0 to 127.254.255.0 are taken")


def _candidates(seed: str) -> Iterator[str]:
    """All networks, beginning with one that the seed selects."""
    count = 254 * 256
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big")
    for number in range(count):
        second, third = divmod((start + number) % count, 256)
        yield f"127.{second + 1}.{third}"
