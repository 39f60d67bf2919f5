"""Follows each worker that is being replaced: its requests are counted and its lines arrive."""

import asyncio
from collections.abc import Callable, Coroutine

from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.sidecar import Returned
from quarterdeck.router.canary import SidecarCanary
from quarterdeck.router.follower import Follower
from quarterdeck.router.last_counts import Read, count_until_the_end
from quarterdeck.router.late_sender import LateSender
from quarterdeck.router.loss import RequestCounts
from quarterdeck.router.proxy import HAProxy, Occasion

CANARY_TIMEOUT = 1.0
"""Seconds that a reload waits for a canary, which marks where the last lines begin."""
RESOLVE_TIMEOUT = 5.0
"""Seconds that a reload waits for the lines of the one before, which have the same facility."""
_GIVE_UP_AFTER = {"reload": 5.0, "orphan": 5.0, "stop": 1.0}
"""Seconds after which lines are lost that rsyslog does not take."""


class OldWorkers:
    """The workers that were told to stop, or will be in a moment."""

    def __init__(
        self,
        proxy: HAProxy,
        access_log: AccessLog,
        canary: SidecarCanary,
        read: Read,
        found: Callable[[int, RequestCounts], None],
    ) -> None:
        self._proxy = proxy
        self._stream = access_log.stream_address
        self._canary = canary
        self._read = read
        self._found = found
        self._followers: set[Follower] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def held(self) -> int:
        """Lines of old workers that may still have to be sent to rsyslog."""
        return sum(one.held for one in self._followers)

    async def follow(self, occasion: Occasion) -> None:
        """Follow the worker that runs now, which is to be told to stop; return when it may be."""
        connected = asyncio.Event()
        socket = self._proxy.admin_socket
        follower = await self._attached(socket, occasion) if self._stream else None
        # The counts of another router's worker are none of ours.
        found = _ignore if occasion == "orphan" else self._found
        self._add(self._until_served(socket, connected, found, follower))
        if follower is not None:
            self._followers.add(follower)
            self._add(self._run(follower))
        await connected.wait()

    def close(self) -> None:
        """Let go of all of them."""
        for task in self._tasks:
            task.cancel()

    async def _attached(self, socket: str, occasion: Occasion) -> Follower:
        for one in tuple(self._followers):
            try:
                async with asyncio.timeout(RESOLVE_TIMEOUT):
                    await one.resolved.wait()
            except TimeoutError:
                break
        sender = LateSender(str(self._stream), self._canary.way_back, _GIVE_UP_AFTER[occasion])
        follower = Follower(sender, self._proxy.generation)
        # Another router's worker counts together with ours, so a canary says nothing about it.
        await follower.attach(socket, None if occasion == "orphan" else self._send_canary)
        return follower

    async def _send_canary(self, name: str) -> Returned | None:
        return (await self._canary.try_once(name, CANARY_TIMEOUT)).returned

    async def _until_served(
        self,
        socket: str,
        connected: asyncio.Event,
        found: Callable[[int, RequestCounts], None],
        follower: Follower | None,
    ) -> None:
        try:
            await count_until_the_end(socket, connected, self._read, found)
        finally:
            if follower is not None:
                follower.set_served()

    async def _run(self, follower: Follower) -> None:
        try:
            await follower.run()
        finally:
            self._followers.discard(follower)

    def _add(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name="old worker")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _ignore(_pid: int, _requests: RequestCounts) -> None:
    """Count nothing."""
