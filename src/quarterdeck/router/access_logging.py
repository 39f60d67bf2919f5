"""Says whether access lines arrive: on the router's own pod, and in its metrics."""

import asyncio
from functools import partial

from quarterdeck.api.operator_v1.ingress_controller import ACCESS_LOGGING_READY
from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.log import get_logger
from quarterdeck.router.admin import CommandError, ask_master
from quarterdeck.router.canary import Outcome, SidecarCanary, canary_for
from quarterdeck.router.loss import (
    COUNTS,
    LATE_AFTER,
    RequestCounts,
    Tally,
    requests_in,
    workers_in,
)
from quarterdeck.router.old_workers import OldWorkers
from quarterdeck.router.pod_conditions import ConditionReport, PodConditions
from quarterdeck.router.proxy import HAProxy

log = get_logger("router.access-logging")

CONDITION = ACCESS_LOGGING_READY
"""The type of the condition on the router's pod."""
INTERVAL = 10.0
"""Seconds between two canaries while lines arrive."""
RETRY_INTERVAL = 1.0
"""Seconds between two canaries while they do not."""


class AccessLogWatch:
    """Watches over the access log of a router."""

    def __init__(self, access_log: AccessLog, proxy: HAProxy, conditions: PodConditions) -> None:
        self._canary = canary_for(access_log, proxy.sockets)
        self._proxy = proxy
        self._conditions = conditions
        self._to_sidecar = access_log.to_sidecar
        self._read = partial(requests_in, without_empty=access_log.ignore_empty_requests)
        self.tally = Tally()
        self.ready = False
        self._old_workers: OldWorkers | None = None
        if isinstance(self._canary, SidecarCanary):
            self._old_workers = OldWorkers(
                proxy, access_log, self._canary, self._read, self._counted
            )
            proxy.before_stop = self._old_workers.follow
        proxy.after_stop = self.close

    async def run(self) -> None:
        """Send canaries until cancelled; HAProxy's end closes the rest."""
        while True:
            outcome = await self.look()
            if outcome.arrives != self.ready:
                log.info("access logging", ready=outcome.arrives, reason=outcome.message)
            self.ready = outcome.arrives
            self._conditions.report(CONDITION, report(outcome, self.tally.lost))
            await asyncio.sleep(self._pause(outcome))

    def close(self) -> None:
        """Let go of old workers, and stop listening for canaries."""
        self._proxy.before_stop = None
        if self._old_workers is not None:
            self._old_workers.close()
        self._canary.close()

    def _counted(self, pid: int, requests: RequestCounts) -> None:
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
        if (said := outcome.returned) is not None:
            held = self._old_workers.held if self._old_workers is not None else 0
            now = asyncio.get_running_loop().time()
            self.tally = self.tally.heard(said.lines, said.started, now, held)
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
        answers: dict[int, RequestCounts] = {}
        for pid in running:
            try:
                found = self._read(await ask_master(socket, f"@!{pid} {COUNTS}"))
            except CommandError:
                continue
            if found is not None:
                answers[pid] = found
        self.tally = self.tally.asked(answers, running)
        return answers.keys() == set(running)


def report(outcome: Outcome, lost: int) -> ConditionReport:
    """What the condition says."""
    message = outcome.message
    if lost:
        message += f"; {lost} lines were lost since the router started"
    return ConditionReport(outcome.arrives, outcome.reason, message)
