"""Notes every two seconds that this process runs and, if that matters, that the server works.

It matters shortly before a verdict: an operator cannot answer a server that hangs, or that refuses
writes. A watch does not show this soon, because a server without changes sends nothing either, and
an etcd without space answers every read. So from a grace period before a verdict on, the checker
writes again and again what it publishes about itself. At other times there is no request.

A pulse does not wait for the one before: a slow server answers late, but as often as it is asked.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from quarterdeck.controller import Manager
from quarterdeck.kube import ApiError, KubeError, NotFound, TooManyRequests
from quarterdeck.log import get_logger
from quarterdeck.operators.staleness.grace import PULSE_PERIOD, Grace
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

log = get_logger("staleness")

LEAD = 3 * PULSE_PERIOD
"""How many seconds more than the grace period before a verdict the writes begin."""
MAX_UNANSWERED = 15
"""The most pulses without an answer; the client gives each of them up after half a minute."""


class StandingChallenge(msgspec.Struct, frozen=True):
    """A challenge that stands: the operator's name, and the seconds until its verdict."""

    name: str
    due: float


class Pulse:
    """Sends the pulses to the grace period."""

    def __init__(
        self,
        manager: Manager,
        grace: Grace,
        standing: Callable[[], StandingChallenge | None],
        reached: Callable[[], float],
        write: Callable[[], Awaitable[None]],
    ) -> None:
        """`standing` returns the challenge with the first verdict; `write` changes something.

        `reached` is as in `Grace`. `write` raises `KubeError` if the server does not accept it.
        """
        self._manager = manager
        self._grace = grace
        self._standing = standing
        self._reached = reached
        self._write = write
        self._unanswered = 0
        self.trouble = ""
        """Why the last pulse failed, in one line; empty if it did not."""

    async def run(self) -> None:
        """Send pulses until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                standing = self._standing()
                if standing is None or not self._is_due(standing):
                    self.trouble = ""
                    self._grace.pulse(*self._clocks())
                elif self._unanswered < MAX_UNANSWERED:
                    self._unanswered += 1
                    tasks.create_task(self._ask(standing), name="pulse")
                await asyncio.sleep(PULSE_PERIOD)

    async def refuses_writes(self, name: str) -> bool:
        """Whether the server refuses every write now; note what it does.

        If it refuses only ours, this cannot be told: then it counts that it answers a read of the
        ClusterOperator `name`.
        """
        try:
            await self._write()
        except KubeError as error:
            if refuses_all_writes(error):
                self._failed(error)
                self._grace.refused(self._manager.clock())
                return True
            if not await self._answers(name):
                return False
        self.trouble = ""
        self._grace.accepted(*self._clocks())
        return False

    async def _ask(self, standing: StandingChallenge) -> None:
        try:
            await self.refuses_writes(standing.name)
        finally:
            self._unanswered -= 1

    def _is_due(self, standing: StandingChallenge) -> bool:
        # Without a grace period nothing waits for the answer.
        return bool(self._grace.seconds) and standing.due <= self._grace.seconds + LEAD

    async def _answers(self, name: str) -> bool:
        """Whether the server answers a request that it cannot answer from its memory."""
        try:
            await self._manager.replica_client.get(PLAIN_CLUSTER_OPERATORS, name)
        except NotFound:
            return True
        except KubeError as error:
            self._failed(error)
            return False
        return True

    def _clocks(self) -> tuple[float, float, float]:
        return self._manager.clock(), self._manager.wall().timestamp(), self._reached()

    def _failed(self, error: KubeError) -> None:
        self.trouble = str(error)[:200]
        log.v(4).info("no answer shortly before a verdict", error=str(error))


def refuses_all_writes(error: KubeError) -> bool:
    """Whether the server takes no write at all; False if it refuses only what we write.

    A missing right, a policy, a quota or a webhook says nothing about the writes of an operator.
    """
    if not isinstance(error, ApiError):
        return True
    if "calling webhook" in error.message:
        return False
    return error.code >= 500 or isinstance(error, TooManyRequests)
