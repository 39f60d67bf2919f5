"""Notes every two seconds that this process runs and, if that matters, that the server answers.

It matters while a challenge stands: an operator cannot answer a server that hangs, and a verdict
must not follow. A watch does not show this soon, because a server without changes sends nothing
either. So the checker reads a challenged ClusterOperator again and again until it has answered or
is stale. While no challenge stands there is no request.
"""

import asyncio
from collections.abc import Callable

from quarterdeck.controller import Manager
from quarterdeck.kube import KubeError, NotFound
from quarterdeck.log import get_logger
from quarterdeck.operators.staleness.grace import Grace
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

log = get_logger("staleness")

PULSE_PERIOD = 2.0
"""The seconds between two pulses."""


class Pulse:
    """Sends the pulses to the grace period."""

    def __init__(
        self, manager: Manager, grace: Grace, challenged: Callable[[], str | None]
    ) -> None:
        """`challenged` returns the name of an operator whose challenge stands."""
        self._manager = manager
        self._grace = grace
        self._challenged = challenged

    async def run(self) -> None:
        """Send pulses until cancelled."""
        while True:
            name = self._challenged()
            if name is None or await self._answers(name):
                self._grace.pulse(self._manager.clock(), self._manager.wall().timestamp())
            await asyncio.sleep(PULSE_PERIOD)

    async def _answers(self, name: str) -> bool:
        """Whether the server answers a request that it cannot answer from its memory."""
        try:
            await self._manager.replica_client.get(PLAIN_CLUSTER_OPERATORS, name)
        except NotFound:
            return True
        except KubeError as error:
            log.v(4).info("no answer while a challenge stands", operator=name, error=str(error))
            return False
        return True
