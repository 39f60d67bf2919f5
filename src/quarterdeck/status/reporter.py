"""Keeps an operator's ClusterOperator as the operator says that it is.

    def setup(manager: Manager) -> None:
        notes = manager.objects(NOTES)
        Reporter(manager, "sample", lambda now: health(notes.all()), [Watch(notes)])

The operator decides what is said (`report.py`). The reporter decides when it is written: when it
differs from what stands there, whoever changed it, and by the leader alone. So it answers the
staleness challenge as soon as its watch tells it, also when the operator has nothing to do.

It writes by patches of the status, guarded by the version that it looked at. Not by server-side
apply: versions and related objects, and in some clusters the conditions too, are lists that an
apply replaces as a whole, others' entries included. What a patch changes is recorded under the
operator's own field manager with a new time, which is what the staleness checker looks at.

A cluster without ClusterOperators, or one where we may not write them, does not keep the operator
from its work.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from quarterdeck.api.config_v1 import CLUSTER_OPERATORS, ObjectReference, OperandVersion
from quarterdeck.api.meta import LEASES, NAMESPACES, Key, Object
from quarterdeck.controller import (
    DONE,
    Backoff,
    Controller,
    Manager,
    Result,
    Selection,
    Watch,
    to_singleton,
)
from quarterdeck.log import get_logger
from quarterdeck.status.report import Report, desired_status

log = get_logger("status.reporter")

PLAIN_CLUSTER_OPERATORS = CLUSTER_OPERATORS.plain
"""As plain data: a typed one would drop what it does not know from others' entries."""

ReportSource = Callable[[datetime], Report | None]
"""What the operator says at this time; None while it cannot say anything."""

PAUSE = 1.0
"""Seconds between two questions to the operator, however much happens: it may look at all its
objects to answer. The ClusterOperator itself is looked at whenever it changes."""

UNSYNCED = 0.2
"""Seconds between two looks whether the ClusterOperator is known by now; nothing is sent."""

REPORT_BACKOFF = Backoff(limit=10.0)
"""Refused writes are tried again often enough to answer in time when they are allowed again."""


class Reporter:
    """Reports for one operator."""

    def __init__(
        self,
        manager: Manager,
        name: str,
        report: Report | ReportSource | None = None,
        reads: Sequence[Watch[Any]] = (),
    ) -> None:
        """Report as the ClusterOperator `name`; ask again when something in `reads` changes.

        Without a source nothing is written until the operator `tell`s something.
        """
        self._manager = manager
        self._key = Key("", name)
        self._operators = manager.objects(
            PLAIN_CLUSTER_OPERATORS,
            Selection(name=name, optional=True),
            writes=["create", "status"],
        )
        self._source = _source(report)
        self._last: Report | None = None
        self._asked_at: float | None = None
        self._compared: tuple[str, Report] | None = None
        to_own = to_singleton(self._key)
        others = [msgspec.structs.replace(watch, map=to_own) for watch in reads]
        self._controller = Controller(
            f"clusteroperator-{name}",
            self._reconcile,
            [Watch(self._operators), *others],
            backoff=REPORT_BACKOFF,
            # Nothing tells of an object that is not there.
            at_start=[self._key],
        )
        manager.add(self._controller)

    def tell(self, report: Report) -> None:
        """From now on the operator says this."""
        self._source = _source(report)
        self.ask_again()

    def ask_again(self) -> None:
        """The operator would say something else now."""
        self._asked_at = None
        self._controller.wake(self._key)

    async def _reconcile(self, key: Key) -> Result:
        if not self._operators.cache.synced:
            # Its first list tells nobody if it is empty.
            return Result(requeue_after=UNSYNCED)
        report, again = self._ask()
        if report is None:
            return Result(requeue_after=again)
        current = self._operators.get(key) or await self._created()
        # What the operator reads may change thousands of times a second; this does not.
        if self._compared != (current["metadata"]["resourceVersion"], report):
            await self._write(current, report)
            self._compared = (current["metadata"]["resourceVersion"], report)
        return DONE if again is None else Result(requeue_after=again)

    async def _write(self, current: Object, report: Report) -> None:
        """Make the status so, unless it is or the object is on its way out."""
        if current["metadata"].get("deletionTimestamp"):
            return
        said = completed(report, self._manager.release_version, self._manager.home)
        status = desired_status(current.get("status") or {}, said, self._manager.now())
        await self._operators.set_status(current, status)

    def _ask(self) -> tuple[Report | None, float | None]:
        """What the operator says, and in how many seconds to ask it again."""
        now, time_of_day = self._manager.clock(), self._manager.now()
        if self._asked_at is not None and now - self._asked_at < PAUSE:
            return self._last, PAUSE - (now - self._asked_at)
        self._asked_at, self._last = now, self._source(time_of_day)
        if self._last is None:
            return None, PAUSE
        if self._last.look_again is None:
            return self._last, None
        return self._last, max(PAUSE, (self._last.look_again - time_of_day).total_seconds())

    async def _created(self) -> Object:
        made = await self._operators.create({"metadata": {"name": self._key.name}, "spec": {}})
        log.info("ClusterOperator created", name=self._key.name)
        return made


def completed(report: Report, release: str, home: Key) -> Report:
    """The report with what is the same for every operator: its release, namespace and Lease."""
    related = [reference_to_namespace(home.namespace)]
    if home.name:
        related.append(
            ObjectReference(
                group=LEASES.group,
                resource=LEASES.plural,
                namespace=home.namespace,
                name=home.name,
            )
        )
    versions = report.versions
    if report.runs_release and release:
        versions = (OperandVersion(name="operator", version=release), *versions)
    return msgspec.structs.replace(
        report, versions=versions, related_objects=(*related, *report.related_objects)
    )


def reference_to_namespace(name: str) -> ObjectReference:
    """A namespace as a related object."""
    return ObjectReference(group=NAMESPACES.group, resource=NAMESPACES.plural, name=name)


def _source(report: Report | ReportSource | None) -> ReportSource:
    return report if callable(report) else lambda _: report
