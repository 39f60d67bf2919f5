"""Says whether access lines arrive: on the router's own pod, and in its metrics."""

import asyncio
from functools import partial

from quarterdeck.api.operator_v1.ingress_controller import ACCESS_LOGGING_READY
from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.log import get_logger
from quarterdeck.router.admin import CommandError, ask_master
from quarterdeck.router.canary import Outcome, canary_for
from quarterdeck.router.last_counts import count_until_the_end
from quarterdeck.router.loss import (
    COUNTS,
    LATE_AFTER,
    Requests,
    Tally,
    requests_in,
    workers_in,
)
from quarterdeck.router.pod_conditions import PodConditions, Report
from quarterdeck.router.proxy import Proxy

log = get_logger("router.access-logging")

CONDITION = ACCESS_LOGGING_READY
"""The type of the condition on the router's pod."""
INTERVAL = 10.0
"""Seconds between two canaries while lines arrive."""
RETRY_INTERVAL = 1.0
"""Seconds between two canaries while they do not."""


class AccessLogging:
    """Watches over the access log of a router."""

    def __init__(self, access_log: AccessLog, proxy: Proxy, conditions: PodConditions) -> None:
        self._canary = canary_for(access_log, proxy.sockets)
        self._proxy = proxy
        self._conditions = conditions
        self._to_sidecar = access_log.to_sidecar
        self._read = partial(requests_in, without_empty=access_log.ignore_empty_requests)
        self.tally = Tally()
        self.ready = False
        self._old_workers: set[asyncio.Task[None]] = set()
        if self._to_sidecar:
            proxy.before_reload = self._follow_worker

    async def run(self) -> None:
        """Send canaries until cancelled."""
        try:
            while True:
                outcome = await self.look()
                if outcome.arrives != self.ready:
                    log.info("access logging", ready=outcome.arrives, reason=outcome.message)
                self.ready = outcome.arrives
                self._conditions.report(CONDITION, report(outcome, self.tally.lost))
                await asyncio.sleep(self._pause(outcome))
        finally:
            self.close()

    def close(self) -> None:
        """Let go of old workers, and stop listening for canaries."""
        self._proxy.before_reload = None
        for task in self._old_workers:
            task.cancel()
        self._canary.close()

    async def _follow_worker(self) -> None:
        """Count the requests of the worker that runs now until it has ended them all."""
        connected = asyncio.Event()
        socket = self._proxy.admin_socket
        task = asyncio.create_task(
            count_until_the_end(socket, connected, self._read, self._counted), name="old worker"
        )
        self._old_workers.add(task)
        task.add_done_callback(self._old_workers.discard)
        await connected.wait()

    def _counted(self, pid: int, requests: Requests) -> None:
        self.tally = self.tally.asked({pid: requests}, {*self.tally.workers, pid})

    def _pause(self, outcome: Outcome) -> float:
        """Seconds until the next canary."""
        if not outcome.arrives:
            return RETRY_INTERVAL
        return INTERVAL if self.tally.complete else LATE_AFTER

    async def look(self) -> Outcome:
        """Send a canary, and count requests and lines."""
        if self._proxy.trouble:
            return Outcome(False, "RouterNotServing", self._proxy.trouble)
        if self._to_sidecar:
            await self._count_requests()
        outcome = await self._canary.try_once()
        if outcome.lines is not None:
            clock = asyncio.get_running_loop().time
            self.tally = self.tally.heard(outcome.lines, outcome.started, clock())
            if await self._count_requests():
                self.tally = self.tally.settled()
        return outcome

    async def _count_requests(self) -> bool:
        """Ask each worker that runs, old ones too; return whether all gave an answer."""
        socket = self._proxy.master_socket
        try:
            running = workers_in(await ask_master(socket, "show proc"))
        except CommandError:
            return False  # a master that is just reloading answers nobody
        if not running:
            return False  # nor does it know its workers yet: none of them has ended
        answers: dict[int, Requests] = {}
        for pid in running:
            try:
                found = self._read(await ask_master(socket, f"@!{pid} {COUNTS}"))
            except CommandError:
                continue
            if found is not None:
                answers[pid] = found
        self.tally = self.tally.asked(answers, running)
        return answers.keys() == set(running)


def report(outcome: Outcome, lost: int) -> Report:
    """What the condition says."""
    message = outcome.message
    if lost:
        message += f"; {lost} lines were lost since the router started"
    return Report(outcome.arrives, outcome.reason, message)
