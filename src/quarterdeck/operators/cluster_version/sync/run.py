"""Brings a cluster to a release and keeps it there.

`Schedule` chooses the next manifest, and `Applier` applies it. This module runs the workers and the
passes, and reports the progress.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import NoReturn, TypeAlias

from quarterdeck.controller.tasks import guarded
from quarterdeck.log import get_logger
from quarterdeck.operators.cluster_version.sync.apply import Applier
from quarterdeck.operators.cluster_version.sync.cluster import Cluster
from quarterdeck.operators.cluster_version.sync.lacking import LACKING, brings_others
from quarterdeck.operators.cluster_version.sync.progress import (
    Done,
    Failed,
    ManifestFault,
    Outcome,
    PayloadProgress,
    Waiting,
)
from quarterdeck.operators.cluster_version.sync.schedule import Schedule
from quarterdeck.payload.graph import (
    Mode,
    build_graph,
    level_label,
)
from quarterdeck.payload.model import Manifest, ObjectIdentity

log = get_logger("cluster-version.sync")

Report: TypeAlias = Callable[[PayloadProgress], None]
"""Called at each change of the progress; returns at once."""

WORKERS = {Mode.INITIALIZING: 32, Mode.UPDATING: 32, Mode.RECONCILING: 4}
"""How many manifests may have requests in flight at the same time."""
PASS_AFTER = (120.0, 240.0)
"""The least and the most seconds between two passes over a settled payload."""
CREATE_RETRY_PERIOD = 2.0
"""Seconds between two attempts to create the ClusterOperators before their turn."""
TIME_SLICE = 0.005
"""Seconds of work after which other tasks of the event loop run."""


async def run_payload(
    manifests: Sequence[Manifest], mode: Mode, cluster: Cluster, report: Report
) -> PayloadProgress:
    """Apply the given manifests, in file order, wait for their roll-outs, and return the progress.

    Initializing and updating return when all manifests are done, however long that takes; failures
    are reported and retried. Reconciling returns after one pass, done or not.
    """
    run = _Run(manifests, mode, cluster, report)
    schedule = run.schedule
    if mode is Mode.RECONCILING:
        await run.work(lambda: schedule.all_tried)
    else:
        await run.work(lambda: schedule.all_done)
    return run.progress()


async def keep_payload(
    manifests: Sequence[Manifest],
    cluster: Cluster,
    report: Report,
    *,
    pass_after: tuple[float, float] = PASS_AFTER,
) -> NoReturn:
    """Reconcile all objects every 2 to 4 minutes, and an object at once when it changes."""
    run = _Run(manifests, Mode.RECONCILING, cluster, report)
    await run.work(lambda: False, pass_after)
    raise AssertionError("work without an end has ended")


class _Run:
    """One payload in one mode."""

    def __init__(
        self, manifests: Sequence[Manifest], mode: Mode, cluster: Cluster, report: Report
    ) -> None:
        graph = build_graph(manifests, mode)
        self.schedule = Schedule(graph)
        self._mode = mode
        self._manifests = graph.manifests
        self._cluster = cluster
        self._clock = cluster.clock
        self._report = report
        self._applier = Applier(graph.manifests, mode, cluster)
        self._identities = [manifest.identity for manifest in graph.manifests]
        self._steps: dict[ObjectIdentity, list[int]] = {}
        for step, own in enumerate(self._identities):
            # Some name a namespace though their kind has none.
            for identity in {own, own._replace(namespace="")}:
                self._steps.setdefault(identity, []).append(step)
        self._changed = asyncio.Event()
        self._last: PayloadProgress | None = None
        self._troubles: dict[type[Outcome], tuple[ManifestFault, ...]] | None = None
        """The faults and notes by outcome; None if an outcome has changed since."""

    async def work(
        self, is_over: Callable[[], bool], pass_after: tuple[float, float] | None = None
    ) -> None:
        """Take steps until `is_over`; with `pass_after`, begin a new pass again and again."""
        began = self._clock()
        next_pass = self._time_of_pass(pass_after)
        log.info("payload begun", mode=self._mode.value, manifests=len(self._manifests))
        with self._cluster.following(self._manifests, self._object_changed):
            async with (
                asyncio.TaskGroup() as tasks,
                self._beside(tasks, self._follow_served),
                self._beside(tasks, self._create_operators),
            ):
                while not is_over():
                    self._changed.clear()
                    await self._take_steps(tasks)
                    self._report_progress()
                    if is_over():
                        break
                    await self._until_changed(next_pass)
                    if next_pass is not None and self._clock() >= next_pass:
                        next_pass = self._time_of_pass(pass_after)
                        log.info("payload kept", **_figures(self.progress()))
                        self.schedule.begin_pass(self._applier.is_settled)
        took = round(self._clock() - began, 3)
        log.info("payload ended", mode=self._mode.value, seconds=took, **_figures(self.progress()))

    @asynccontextmanager
    async def _beside(
        self, tasks: asyncio.TaskGroup, work: Callable[[], Coroutine[None, None, None]]
    ) -> AsyncIterator[None]:
        """Run a second task while the context is open."""
        task = tasks.create_task(work(), name=work.__name__)
        try:
            yield
        finally:
            task.cancel()

    async def _follow_served(self) -> None:
        await self._cluster.follow_served(self._manifests)

    async def _create_operators(self) -> None:
        """Create the ClusterOperators before their turn, so that people see what is to come."""
        missing = [] if self._mode is Mode.RECONCILING else self._applier.operators()
        while missing:
            missing = [one for one in missing if not await self._applier.create_beforehand(one)]
            await asyncio.sleep(CREATE_RETRY_PERIOD)

    def progress(self) -> PayloadProgress:
        """The progress of the payload now."""
        told = self._troubles
        if told is None:
            told = self._troubles = self._collect_troubles()
        return PayloadProgress(
            mode=self._mode,
            done=len(self.schedule) - len(self.schedule.undone),
            total=len(self._manifests),
            run_level=self._lowest_level(),
            waiting=told[Waiting],
            faults=told[Failed],
            notes=told[Done],
        )

    def _time_of_pass(self, pass_after: tuple[float, float] | None) -> float | None:
        """When the next pass begins; None for a run without passes."""
        if pass_after is None:
            return None
        return self._clock() + random.uniform(*pass_after)  # noqa: S311 jitter

    async def _take_steps(self, tasks: asyncio.TaskGroup) -> None:
        """Take all steps that may begin; each one that needs a request gets its own task."""
        turn = self._clock()
        workers = WORKERS[self._mode]
        while len(self.schedule.running) < workers:
            step = self.schedule.take(self._clock())
            if step is None:
                return
            outcome = self._applier.look(step)
            if outcome is None:
                name = self._manifests[step].file
                tasks.create_task(guarded(name, self._attempt(step)), name=name)
            else:
                self._record(step, outcome)
            if self._clock() - turn > TIME_SLICE:
                await asyncio.sleep(0)
                turn = self._clock()

    async def _attempt(self, step: int) -> None:
        outcome, wrote = await self._applier.attempt(step)
        self._record(step, outcome, wrote=wrote)
        self._changed.set()

    def _record(self, step: int, outcome: Outcome, *, wrote: bool = False) -> None:
        before = self.schedule.outcomes.get(step)
        pause = self.schedule.record(step, outcome, self._clock(), wrote=wrote)
        if pause:
            who = str(self._identities[step])
            log.warning("somebody keeps changing an object", object=who, pause=round(pause, 1))
        if before == outcome:
            return
        if outcome.reason or (before is not None and before.reason):
            self._troubles = None
        if isinstance(outcome, Done) and brings_others(self._identities[step]):
            self._wake_lacking()
        if not outcome.reason:
            return
        facts = {"object": str(self._identities[step]), "reason": outcome.reason}
        if isinstance(outcome, Failed):
            place = self._manifests[step].place
            log.warning("manifest failed", message=outcome.message, manifest=place, **facts)
        else:
            log.v(4).info("manifest looked at", message=outcome.message, **facts)

    def _wake_lacking(self) -> None:
        """Wake the steps that lack a kind or a namespace: there is one more now."""
        for step, outcome in list(self.schedule.troubled.items()):
            if outcome.reason in LACKING:
                self.schedule.wake(step, self._clock())
        self._changed.set()

    def _object_changed(self, identity: ObjectIdentity) -> None:
        for step in self._steps.get(identity, ()):
            if self.schedule.wake(step, self._clock()):
                self._changed.set()

    async def _until_changed(self, next_pass: float | None) -> None:
        """Return when there may be a step to take."""
        moments = [at for at in (self.schedule.next_due(), next_pass) if at is not None]
        try:
            async with asyncio.timeout(max(0.0, min(moments) - self._clock()) if moments else None):
                await self._changed.wait()
        except TimeoutError:
            return

    def _report_progress(self) -> None:
        progress = self.progress()
        if self._mode is not Mode.RECONCILING and progress.completed and self.schedule.running:
            return  # A done step whose object was deleted runs again, so it is not complete yet.
        if progress != self._last:
            self._last = progress
            self._report(progress)

    def _collect_troubles(self) -> dict[type[Outcome], tuple[ManifestFault, ...]]:
        told: dict[type[Outcome], list[ManifestFault]] = {Done: [], Waiting: [], Failed: []}
        for step, outcome in sorted(self.schedule.troubled.items()):
            where = f"{self._manifests[step].file}: {self._identities[step]}"
            fault = ManifestFault(manifest=where, reason=outcome.reason, message=outcome.message)
            told[type(outcome)].append(fault)
        return {what: tuple(faults) for what, faults in told.items()}

    def _lowest_level(self) -> str:
        """The run level of the first manifest that is not done."""
        if not self.schedule.undone:
            return ""
        level = self._manifests[min(self.schedule.undone)].run_level
        return level_label(level) if level is None else f"0000_{level_label(level)}"


def _figures(progress: PayloadProgress) -> dict[str, int]:
    return {
        "done": progress.done,
        "total": progress.total,
        "waiting": len(progress.waiting),
        "faults": len(progress.faults),
    }
