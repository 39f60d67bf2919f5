"""The metrics of the release and of the cluster operators.

The names and labels are those of OpenShift's cluster version operator, so that its dashboards and
alerts work; the matching alerts are in `deploy/monitoring/cluster-version.yaml`. Only the leader
has these metrics, because only it knows the progress of a payload. They are computed at each
scrape; nothing is counted in between.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quarterdeck.api.config_v1 import (
    ClusterOperator,
    ClusterStatusCondition,
    ClusterVersion,
    UpdateHistory,
    UpdateState,
)
from quarterdeck.operators.cluster_version.history import latest_completed
from quarterdeck.operators.cluster_version.sync.progress import PayloadProgress
from quarterdeck.status import find_condition


class MetricsInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of the metrics."""

    version: ClusterVersion | None
    operators: tuple[ClusterOperator, ...] = ()
    progress: PayloadProgress | None = None
    """The progress of the release in the newest history entry."""


class VersionCollector(Collector):
    """Computes the metrics at each scrape; none while another replica is the leader."""

    def __init__(self, observe: Callable[[], MetricsInput | None]) -> None:
        self._observe = observe

    def collect(self) -> Iterable[Metric]:
        """The metrics now."""
        seen = self._observe()
        return metrics(seen) if seen is not None else ()


def metrics(seen: MetricsInput) -> Iterator[Metric]:
    """The metrics of a cluster."""
    yield _releases(seen.version)
    yield _payload(seen)
    yield _available_updates(seen.version)
    yield _up(seen.operators)
    yield _conditions(seen)


def _releases(version: ClusterVersion | None) -> Metric:
    found = GaugeMetricFamily(
        "cluster_version",
        "The releases of this cluster by what they are to it; the value is when that began.",
        labels=["type", "version", "image", "from_version"],
    )
    for type_, entry, came_from, since in _roles(version) if version else ():
        found.add_metric([type_, entry[0], entry[1], came_from], since.timestamp())
    return found


VersionAndImage = tuple[str, str]
"""A release by its version and image."""


def _roles(version: ClusterVersion) -> Iterator[tuple[str, VersionAndImage, str, datetime]]:
    """The releases by their role: role, release, the version before it, and since when."""
    status = version.status
    if status is None or not status.history:
        return
    history = status.history
    newest, done = history[0], latest_completed(history)
    running = (done.version or "") if done else ""
    yield "current", _named(newest), running, newest.started_time
    yield "initial", _named(history[-1]), "", history[-1].started_time
    if version.metadata.creation_timestamp:
        since = version.metadata.creation_timestamp
        yield "cluster", _named(newest), history[-1].version or "", since
    if done is not None and done.completion_time is not None:
        yield "completed", _named(done), _before(history, done), done.completion_time
    if newest.state == UpdateState.PARTIAL and done is not None:
        yield "updating", _named(newest), running, newest.started_time
    accepted = find_condition(status.conditions, "ReleaseAccepted")
    asked = version.spec.desired_update
    if asked is not None and accepted is not None and accepted.status == "False":
        # The update is refused; an accepted one is in the history.
        wanted = (asked.version or "", asked.image or "")
        yield "desired", wanted, running, accepted.last_transition_time
    failing = find_condition(status.conditions, "Failing")
    if failing is not None and failing.status == "True":
        yield "failure", _named(newest), running, failing.last_transition_time


def _named(entry: UpdateHistory) -> VersionAndImage:
    return entry.version or "", entry.image


def _before(history: tuple[UpdateHistory, ...], entry: UpdateHistory) -> str:
    """The last version that was completed before this entry."""
    older = latest_completed(history[history.index(entry) + 1 :])
    return (older.version or "") if older else ""


def _payload(seen: MetricsInput) -> Metric:
    found = GaugeMetricFamily(
        "cluster_version_payload",
        "How many manifests of the release are applied and ready, and how many are not yet.",
        labels=["version", "type"],
    )
    status = seen.version.status if seen.version else None
    if seen.progress is not None and status is not None and status.history:
        version = status.history[0].version or ""
        found.add_metric([version, "applied"], seen.progress.done)
        found.add_metric([version, "pending"], seen.progress.total - seen.progress.done)
    return found


def _available_updates(version: ClusterVersion | None) -> Metric:
    found = GaugeMetricFamily(
        "cluster_version_available_updates", "How many releases the cluster can move to.", labels=[]
    )
    if version is not None and version.status is not None:
        found.add_metric([], len(version.status.available_updates or ()))
    return found


def _up(operators: Iterable[ClusterOperator]) -> Metric:
    found = GaugeMetricFamily(
        "cluster_operator_up",
        "1 for a cluster operator that is available.",
        labels=["name", "version", "reason"],
    )
    for operator in operators:
        available = find_condition(operator.status.conditions, "Available")
        runs = {one.name: one.version for one in operator.status.versions}
        reason = available.reason if available else ""
        found.add_metric(
            [operator.metadata.name, runs.get("operator", ""), reason],
            available is not None and available.status == "True",
        )
    return found


def _conditions(seen: MetricsInput) -> Metric:
    found = GaugeMetricFamily(
        "cluster_operator_conditions",
        "1 for a condition that is True, 0 for one that is False; of ClusterVersion too.",
        labels=["name", "condition", "reason"],
    )
    for name, conditions in _reports(seen):
        for condition in conditions:
            # Unknown has no sample, so that no alert fires on it.
            if condition.status in ("True", "False"):
                labels = [name, condition.type, condition.reason]
                found.add_metric(labels, condition.status == "True")
    return found


def _reports(seen: MetricsInput) -> Iterator[tuple[str, tuple[ClusterStatusCondition, ...]]]:
    if seen.version is not None and seen.version.status is not None:
        yield seen.version.metadata.name, seen.version.status.conditions
    for operator in seen.operators:
        yield operator.metadata.name, operator.status.conditions
