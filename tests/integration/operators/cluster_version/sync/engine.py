"""The payload engine on a real API server, under a user of its own so that writes are counted."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.operators.cluster_version.sync import (
    Cluster,
    PayloadProgress,
    keep_payload,
    run_payload,
)
from quarterdeck.operators.cluster_version.sync.standstill import STANDSTILL_TIMEOUT
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.load import run_level_and_component
from quarterdeck.payload.model import Manifest
from quarterdeck.testing.audit import AuditedRequest, requests_by, writes_by

LIMIT = 90.0
"""Seconds until what a test waits for counts as never coming."""


def manifest(obj: Object, file: str = "0000_10_part_01.yaml") -> Manifest:
    """A manifest as it is loaded from a file of this name."""
    level, component = run_level_and_component(file)
    return Manifest(file=file, document=1, line=1, run_level=level, component=component, object=obj)


class Engine:
    """Runs payloads as a user of its own, and remembers what was reported."""

    def __init__(
        self, control_plane: ControlPlane, name: str, groups: Sequence[str] = ("system:masters",)
    ) -> None:
        self._log = control_plane.audit_log
        self.user = f"engine-{name}"
        self.connection = load_kubeconfig(control_plane.kubeconfig_for(self.user, groups))
        self.reports: list[PayloadProgress] = []
        self.timeout = STANDSTILL_TIMEOUT
        self.told: list[tuple[str, str]] = []
        """What was said about objects: reason and note."""

    def writes(self) -> list[str]:
        """The writes that the server accepted, oldest first: `create configmaps x`."""
        return [
            f"{it.verb} {it.resource} {it.name}"
            for it in writes_by(self._log, self.user)
            if it.code < 400
        ]

    def requests(self) -> list[AuditedRequest]:
        """Everything that was asked of the server, watches when they have ended."""
        return requests_by(self._log, self.user)

    @property
    def latest(self) -> PayloadProgress:
        """What was reported last."""
        return self.reports[-1]

    @asynccontextmanager
    async def cluster(self) -> AsyncIterator[Cluster]:
        """The cluster as the engine sees it."""
        async with (
            Client(self.connection) as client,
            Cluster(client, timeout=self.timeout, announce=self._announced) as cluster,
        ):
            yield cluster

    def _announced(self, _about: Object, reason: str, note: str) -> None:
        self.told.append((reason, note))

    async def run(self, *manifests: Manifest, mode: Mode = Mode.UPDATING) -> PayloadProgress:
        """Where a payload stands after it was run to its end."""
        async with asyncio.timeout(LIMIT), self.cluster() as cluster:
            return await run_payload(manifests, mode, cluster, self.reports.append)

    @asynccontextmanager
    async def running(
        self, *manifests: Manifest, mode: Mode = Mode.UPDATING
    ) -> AsyncIterator["asyncio.Task[PayloadProgress]"]:
        """A payload that runs while the test does something; cut short at the end."""
        async with self.cluster() as cluster:
            task = asyncio.create_task(run_payload(manifests, mode, cluster, self.reports.append))
            try:
                yield task
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    @asynccontextmanager
    async def keeping(
        self,
        *manifests: Manifest,
        pass_after: tuple[float, float] = (600, 600),
        waited_for: bool = True,
    ) -> AsyncIterator[None]:
        """A payload that is kept while the test does something, once it is all done or at once."""
        async with self.cluster() as cluster:
            work = keep_payload(manifests, cluster, self.reports.append, pass_after=pass_after)
            task: asyncio.Task[None] = asyncio.create_task(work)
            try:
                if waited_for:
                    await self.until(lambda progress: progress.completed)
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def until(self, wanted: Callable[[PayloadProgress], Any]) -> PayloadProgress:
        """The report that is as wanted, when it comes."""

        async def look() -> PayloadProgress | None:
            return next((report for report in reversed(self.reports) if wanted(report)), None)

        try:
            found: PayloadProgress = await eventually(look)
        except TimeoutError as error:
            raise AssertionError(f"never so; at last: {self.reports[-1:]}") from error
        return found


async def eventually(look: Callable[[], Any]) -> Any:
    """What is seen, when it is something."""
    async with asyncio.timeout(LIMIT):
        while True:
            if seen := await look():
                return seen
            await asyncio.sleep(0.05)
