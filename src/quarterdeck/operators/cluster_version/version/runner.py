"""Runs the engine on the decided work, and restarts it when other work is decided.

The engine can be cancelled at any point, so the runner simply cancels work that is no longer
wanted. The controller, which the runner wakes, decides what follows from the result.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from quarterdeck.controller import LeadershipLost
from quarterdeck.controller.process import root_cause
from quarterdeck.controller.tasks import guarded
from quarterdeck.log import get_logger
from quarterdeck.operators.cluster_version.sync import (
    Cluster,
    ManifestFault,
    PayloadProgress,
    keep_payload,
    run_payload,
)
from quarterdeck.operators.cluster_version.version.work import Work
from quarterdeck.payload.graph import Mode

log = get_logger("operators.cluster-version.runner")

WAKE_PERIOD = 0.5
"""Seconds between two wake-ups for mere progress."""
CRASH_PAUSE = 5.0
"""Seconds between a crash of the engine and its next start."""

Report = Callable[[PayloadProgress], None]


class Engine(Protocol):
    """What the `sync` package does with a payload."""

    async def run(self, work: Work, report: Report) -> PayloadProgress:
        """Bring the cluster to the payload; return when it is there."""

    async def keep(self, work: Work, report: Report) -> None:
        """Keep the cluster at the payload until cancelled."""


class PayloadEngine:
    """Applies and keeps payloads in one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def run(self, work: Work, report: Report) -> PayloadProgress:
        """Bring the cluster to the payload; return when it is there."""
        return await run_payload(work.manifests, work.mode, self._cluster, report)

    async def keep(self, work: Work, report: Report) -> None:
        """Keep the cluster at the payload until cancelled."""
        await keep_payload(work.manifests, self._cluster, report)


class Runner:
    """Runs one work at a time, and has its progress."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.work: Work | None = None
        self.progress: PayloadProgress | None = None
        """The progress of `work`; None before the engine's first report."""
        self._wake = wake
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def want(self, work: Work | None) -> None:
        """Replace the current work; the same work continues. None stops all work."""
        if work is self.work or (work is not None and work.is_same_as(self.work)):
            return
        if work is not None:
            log.info("work begins", version=work.version, mode=work.mode.value)
        self.work, self.progress = work, None
        self._changed.set()

    def progress_of(self, work: Work | None) -> PayloadProgress | None:
        """The progress of this work; None if it is not the current work."""
        return self.progress if work is not None and work.is_same_as(self.work) else None

    async def run(self, engine: Engine) -> None:
        """Run the current work, whichever it is, until cancelled."""
        try:
            while True:
                self._changed.clear()
                await self._until_changed(engine)
        finally:
            self._forget_timer()

    async def _until_changed(self, engine: Engine) -> None:
        changed = asyncio.create_task(self._changed.wait(), name="work changed")
        doing = asyncio.create_task(guarded("work", self._carry_out(engine)), name="work")
        try:
            await asyncio.wait({changed, doing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            doing.cancel()
            ends = await asyncio.gather(changed, doing, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception):
                raise end

    async def _carry_out(self, engine: Engine) -> None:
        """Run the current work; return when it is to be started again."""
        work = self.work
        if work is None:
            await self._changed.wait()
            return

        def report(progress: PayloadProgress) -> None:
            # Replaced work runs on until it is cancelled, a few turns of the event loop later. Its
            # progress says nothing about the new work, which would count as completed.
            if self.work is work:
                self._report(progress)

        try:
            if work.mode is Mode.RECONCILING:
                await engine.keep(work, report)
            else:
                report(await engine.run(work, report))
                await self._changed.wait()
        except Exception as error:
            why = root_cause(error)
            if isinstance(why, LeadershipLost):
                raise why from error
            log.exception("the engine crashed", version=work.version, again_in=CRASH_PAUSE)
            report(_crashed(work, why))
            await asyncio.sleep(CRASH_PAUSE)

    def _report(self, progress: PayloadProgress) -> None:
        before, self.progress = self.progress, progress
        if before is None or progress.completed or bool(before.faults) != bool(progress.faults):
            self._forget_timer()
            self._wake()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WAKE_PERIOD, self._due)

    def _due(self) -> None:
        self._timer = None
        self._wake()

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _crashed(work: Work, error: Exception) -> PayloadProgress:
    what = f"{type(error).__name__}: {error}"
    fault = ManifestFault(
        manifest=work.version,
        reason="InternalError",
        message=f"the operator itself failed, and tries again: {what}",
    )
    return PayloadProgress(
        mode=work.mode, done=0, total=len(work.manifests), run_level="", faults=(fault,)
    )
