"""Runs the engine on the work that was decided, and begins anew when another is.

The engine can be cancelled at any point, so work that is no longer wanted is simply given up.
What becomes of its result is decided by whoever is woken.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from quarterdeck.controller import LeadershipLost
from quarterdeck.controller.process import root_cause
from quarterdeck.log import get_logger
from quarterdeck.operators.cluster_version.payload.graph import Mode
from quarterdeck.operators.cluster_version.sync.progress import Fault, Progress
from quarterdeck.operators.cluster_version.version.work import Work

log = get_logger("operators.cluster-version.runner")

WAKE_EVERY = 0.5
"""Seconds between two wake-ups for mere progress."""
PAUSE = 5.0
"""Seconds after which the engine is started again when it has crashed."""

Report = Callable[[Progress], None]


class Engine(Protocol):
    """What the `sync` package does with a payload."""

    async def run(self, work: Work, report: Report) -> Progress:
        """Bring the cluster there; come back when it is."""

    async def keep(self, work: Work, report: Report) -> None:
        """Keep it there, until cancelled."""


class Runner:
    """The work that is done now, and how far it is."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self.work: Work | None = None
        self.progress: Progress | None = None
        """Of this work; None before the engine has told anything."""
        self._wake = wake
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def want(self, work: Work | None) -> None:
        """Do this from now on; nothing where it is None. What is done already goes on."""
        if work is self.work or (work is not None and work.is_same_as(self.work)):
            return
        if work is not None:
            log.info("work begins", version=work.version, mode=work.mode.value)
        self.work, self.progress = work, None
        self._changed.set()

    async def run(self, engine: Engine) -> None:
        """Do what is wanted, until cancelled."""
        try:
            while True:
                self._changed.clear()
                await self._until_changed(engine)
        finally:
            self._forget_timer()

    async def _until_changed(self, engine: Engine) -> None:
        changed = asyncio.create_task(self._changed.wait(), name="work changed")
        doing = asyncio.create_task(self._carry_out(engine), name="work")
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
        """Do the work; comes back only to be begun again."""
        work = self.work
        if work is None:
            await self._changed.wait()
            return
        try:
            if work.mode is Mode.RECONCILING:
                await engine.keep(work, self._report)
            else:
                self._report(await engine.run(work, self._report))
                await self._changed.wait()
        except Exception as error:
            why = root_cause(error)
            if isinstance(why, LeadershipLost):
                raise why from error
            log.exception("the engine crashed", version=work.version, again_in=PAUSE)
            self._report(_crashed(work, why))
            await asyncio.sleep(PAUSE)

    def _report(self, progress: Progress) -> None:
        before, self.progress = self.progress, progress
        if before is None or progress.completed or bool(before.faults) != bool(progress.faults):
            self._forget_timer()
            self._wake()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WAKE_EVERY, self._due)

    def _due(self) -> None:
        self._timer = None
        self._wake()

    def _forget_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _crashed(work: Work, error: Exception) -> Progress:
    what = f"{type(error).__name__}: {error}"
    fault = Fault(
        manifest=work.version,
        reason="InternalError",
        message=f"the operator itself failed, and tries again: {what}",
    )
    return Progress(
        mode=work.mode, done=0, total=len(work.manifests), run_level="", faults=(fault,)
    )
