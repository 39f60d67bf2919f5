"""Keeps an operator's ClusterOperator as the operator reports.

    def setup(manager: Manager) -> None:
        notes = manager.objects(NOTES)
        Reporter(manager, "sample", lambda now: health(notes.all()), [Watch(notes)])

The operator decides what is reported (`report.py`). The reporter writes it when the ClusterOperator
differs, whoever changed it; only the leader writes. It watches its ClusterOperator, so it answers
the staleness challenge at once, also while the operator has nothing to do.

It writes fenced patches of the status, not server-side applies: versions and related objects, and
in some clusters the conditions too, are lists that an apply replaces as a whole, entries of others
included. The server records what a patch changes under the operator's own field manager with a new
time, which the staleness checker reads.

An operator works without reporting in a cluster without ClusterOperators, or where it may not write
them.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from quarterdeck.api.config_v1 import CLUSTER_OPERATORS, ObjectReference, OperandVersion
from quarterdeck.api.meta import LEASES, NAMESPACES, Key, Object
from quarterdeck.backoff import Retries
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
from quarterdeck.kube import Forbidden
from quarterdeck.log import get_logger
from quarterdeck.status.report import Report, desired_status

log = get_logger("status.reporter")

PLAIN_CLUSTER_OPERATORS = CLUSTER_OPERATORS.plain
"""Untyped: a typed object would drop unknown fields from entries of others."""

ReportSource = Callable[[datetime], Report | None]
"""Returns the operator's report at this time; None while it has none."""

REPORT_INTERVAL = 1.0
"""The least seconds between two calls of the report source, which may read all objects of the
operator. The ClusterOperator itself is compared whenever it changes."""

SYNC_CHECK_INTERVAL = 0.2
"""Seconds between two checks whether the cache of the ClusterOperator is synced."""

REPORT_BACKOFF = Backoff(limit=10.0)
"""Refused writes are retried often enough to answer a challenge in time once they are allowed."""


class Reporter:
    """Writes the ClusterOperator of one operator."""

    def __init__(
        self,
        manager: Manager,
        name: str,
        report: Report | ReportSource | None = None,
        reads: Sequence[Watch] = (),
    ) -> None:
        """Report as the ClusterOperator `name`; call `report` when an object in `reads` changes.

        Without `report` nothing is written before `set_report`.
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
        self._reported_at: float | None = None
        self._compared: tuple[str, Report] | None = None
        self._refusals = Retries(REPORT_BACKOFF)
        to_own = to_singleton(self._key)
        others = [Watch(watch.source, to_own, watch.predicate) for watch in reads]
        self._controller = Controller(
            f"clusteroperator-{name}",
            self._reconcile,
            [Watch(self._operators), *others],
            backoff=REPORT_BACKOFF,
            # No watch event comes for an object that does not exist.
            at_start=[self._key],
        )
        manager.add(self._controller)

    def set_report(self, report: Report) -> None:
        """Report this from now on."""
        self._source = _source(report)
        self.refresh_report()

    def refresh_report(self) -> None:
        """Call the report source again now, because its report has changed."""
        self._reported_at = None
        self._controller.wake(self._key)

    async def _reconcile(self, key: Key) -> Result:
        if not self._operators.cache.synced:
            # An empty first list causes no watch event.
            return Result(requeue_after=SYNC_CHECK_INTERVAL)
        report, again = self._report()
        if report is None:
            return Result(requeue_after=again)
        try:
            current = self._operators.get(key) or await self._created()
            # The watched objects may change thousands of times a second; the report rarely does.
            if self._compared != (current["metadata"]["resourceVersion"], report):
                await self._write(current, report)
                self._compared = (current["metadata"]["resourceVersion"], report)
        except Forbidden as error:
            return self._refused(error)
        self._refusals.reset()
        return DONE if again is None else Result(requeue_after=again)

    def _refused(self, error: Forbidden) -> Result:
        """Try again later. It is logged once: some operators are never to report."""
        say = log.warning if not self._refusals.failures else log.v(4).info
        say("cannot report, will try again", name=self._key.name, error=error.message)
        return Result(requeue_after=self._refusals.next())

    async def _write(self, current: Object, report: Report) -> None:
        """Write the status if it differs, unless the object is being deleted."""
        if current["metadata"].get("deletionTimestamp"):
            return
        manager = self._manager
        whole = completed(
            report, manager.release_version, manager.home.namespace, manager.lease_key
        )
        status = desired_status(current.get("status") or {}, whole, manager.now())
        await self._operators.set_status(current, status)

    def _report(self) -> tuple[Report | None, float | None]:
        """The operator's report, and in how many seconds to get the next one."""
        now, time_of_day = self._manager.clock(), self._manager.now()
        if self._reported_at is not None and now - self._reported_at < REPORT_INTERVAL:
            return self._last, REPORT_INTERVAL - (now - self._reported_at)
        self._reported_at, self._last = now, self._source(time_of_day)
        if self._last is None:
            return None, REPORT_INTERVAL
        if self._last.valid_until is None:
            return self._last, None
        return self._last, max(
            REPORT_INTERVAL, (self._last.valid_until - time_of_day).total_seconds()
        )

    async def _created(self) -> Object:
        made = await self._operators.create({"metadata": {"name": self._key.name}, "spec": {}})
        log.info("ClusterOperator created", name=self._key.name)
        return made


def completed(report: Report, release: str, namespace: str, lease: Key | None) -> Report:
    """The report with the operator's release version, namespace and Lease added."""
    related = [reference_to_namespace(namespace)]
    if lease is not None:
        related.append(
            ObjectReference(
                group=LEASES.group,
                resource=LEASES.plural,
                namespace=lease.namespace,
                name=lease.name,
            )
        )
    versions = report.versions
    if report.at_release_version and release:
        versions = (OperandVersion(name="operator", version=release), *versions)
    return msgspec.structs.replace(
        report, versions=versions, related_objects=(*related, *report.related_objects)
    )


def reference_to_namespace(name: str) -> ObjectReference:
    """A namespace as a related object."""
    return ObjectReference(group=NAMESPACES.group, resource=NAMESPACES.plural, name=name)


def _source(report: Report | ReportSource | None) -> ReportSource:
    return report if callable(report) else lambda _: report
