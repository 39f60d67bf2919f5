"""Resolves the names of ExternalName Services again and again, because their addresses change."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable

INTERVAL = 10.0
"""Seconds between two resolutions of a name."""

LookUp = Callable[[str], Awaitable[tuple[str, ...]]]


async def look_up(name: str) -> tuple[str, ...]:
    """The addresses of a name, as the system resolves it."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return tuple(sorted({str(entry[4][0]) for entry in found}))


def is_own(address: str) -> bool:
    """Whether this machine, or this pod, has the address: only such a one can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


class Resolver:
    """The addresses of the wanted names; `changed` is called when one has others."""

    def __init__(
        self,
        changed: Callable[[], None],
        interval: float = INTERVAL,
        look_up: LookUp = look_up,
    ) -> None:
        self._changed = changed
        self._look_up = look_up
        self._interval = interval
        self._wanted: frozenset[str] = frozenset()
        self._new = asyncio.Event()
        self.resolved: dict[str, tuple[str, ...]] = {}

    @property
    def own(self) -> frozenset[str]:
        """Those of the addresses that are the router's own, of whatever interface."""
        found = {address for addresses in self.resolved.values() for address in addresses}
        return frozenset(filter(is_own, found))

    def want(self, names: Iterable[str]) -> None:
        """Resolve exactly these names from now on."""
        wanted = frozenset(names)
        if wanted - self._wanted:
            self._new.set()
        self._wanted = wanted
        for name in self.resolved.keys() - wanted:
            del self.resolved[name]

    async def run(self) -> None:
        """Resolve until cancelled."""
        while True:
            self._new.clear()
            wanted = self._wanted
            found = await asyncio.gather(*(self._resolve(name) for name in wanted))
            now = {
                # While the name server is away, the last answer counts.
                name: self.resolved.get(name, ()) if addresses is None else addresses
                for name, addresses in zip(wanted, found, strict=True)
                if name in self._wanted
            }
            if now != self.resolved:
                self.resolved = now
                self._changed()
            try:
                async with asyncio.timeout(self._interval):
                    await self._new.wait()
            except TimeoutError:
                continue

    async def _resolve(self, name: str) -> tuple[str, ...] | None:
        try:
            return await self._look_up(name)
        except socket.gaierror as error:
            return () if error.errno == socket.EAI_NONAME else None
        except (OSError, UnicodeError):
            return ()
