"""Addresses for pods: a /24 of loopback for each agent, an address of it for each pod.

All of 127.0.0.0/8 is this machine. Two agents must not give out the same address, also when
they are of different users: each holds a socket with the network's name in the kernel's
abstract namespace, which belongs to the machine's network and ends with the process.
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
    """A /24 that this process holds alone; addresses are given to holders by name."""

    def __init__(self, prefix: str, lock: socket.socket) -> None:
        self.prefix = prefix
        self._lock = lock
        self._given: dict[str, str] = {}
        # The longest unused comes first, so that an address rests before it is used again.
        self._free = deque(f"{prefix}.{host}" for host in HOSTS)

    def address(self, holder: str, wanted: str = "") -> str:
        """The holder's address: the one it has, the one it wants if free, or another."""
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
        """Let another agent have the network."""
        self._lock.close()


def lock_network(seed: str) -> Network:
    """A network that nobody else holds; the same seed gets the same one, if it is free."""
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
    """All networks, from one on that the seed chooses."""
    count = 254 * 256
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big")
    for number in range(count):
        second, third = divmod((start + number) % count, 256)
        yield f"127.{second + 1}.{third}"
