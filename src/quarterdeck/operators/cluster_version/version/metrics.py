"""The metrics of the release and of the cluster operators.

The names, labels and values are those of OpenShift's cluster version operator, so that its
dashboards work; our alerts about them are in `cluster_version.alerts`. Only the leader has these
metrics, because only it knows the progress of a payload. They are computed at a scrape, and only if
something has changed since the one before.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from operator import is_

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quarterdeck.api.config_v1 import (
    ClusterOperator,
    ClusterStatusCondition,
    ClusterVersion,
    ClusterVersionStatus,
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
    """Computes the metrics at a scrape; none while another replica is the leader."""

    def __init__(self, observe: Callable[[], MetricsInput | None]) -> None:
        self._observe = observe
        self._seen: MetricsInput | None = None
        self._metrics: tuple[Metric, ...] = ()

    def collect(self) -> Iterable[Metric]:
        """The metrics now."""
        seen = self._observe()
        if not _is_same(seen, self._seen):
            self._metrics = tuple(metrics(seen)) if seen is not None else ()
        self._seen = seen
        return self._metrics


def _is_same(one: MetricsInput | None, other: MetricsInput | None) -> bool:
    """Whether the inputs have the same objects; a cache replaces an object that changed."""
    if one is None or other is None:
        return one is other
    return (
        one.version is other.version
        and one.progress is other.progress
        and len(one.operators) == len(other.operators)
        and all(map(is_, one.operators, other.operators))
    )


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
        "The releases of this cluster by what they are to it, and when that began in seconds since "
        "1970; for `current` when the release was made, 0 because a payload does not tell.",
        labels=["type", "version", "image", "from_version"],
    )
    for type_, entry, came_from, since in _roles(version) if version else ():
        found.add_metric([type_, *entry, came_from], since.timestamp() if since else 0)
    return found


VersionAndImage = tuple[str, str]
"""A release by its version and image."""
Role = tuple[str, VersionAndImage, str, datetime | None]
"""What a release is to the cluster, the release, the version before it, and since when."""


def _roles(version: ClusterVersion) -> Iterator[Role]:
    status, created = version.status, version.metadata.creation_timestamp
    if status is None or not status.history:
        return
    history = status.history
    newest, first, done = history[0], history[-1], latest_completed(history)
    running = (done.version or "") if done else ""
    yield "current", _named(newest), running, None
    yield "initial", _named(first), "", created
    # While the first release is being installed, there is no version to come from.
    yield "cluster", _named(newest), (first.version or "") if done else "", created
    if done is not None and done.completion_time is not None:
        yield "completed", _named(done), _before(history, done), done.completion_time
    if newest.state == UpdateState.PARTIAL:
        yield "updating", _named(newest), running, newest.started_time
    wanted = _not_begun(version, newest)
    if wanted is not None:
        yield "desired", wanted, running, _last_change(status, created)
    failing = find_condition(status.conditions, "Failing")
    if failing is not None and failing.status == "True":
        yield "failure", wanted or _named(newest), running, failing.last_transition_time


def _not_begun(version: ClusterVersion, newest: UpdateHistory) -> VersionAndImage | None:
    """The release that is asked for and not in the history yet, as while it is refused."""
    asked = version.spec.desired_update
    if asked is None:
        return None
    wanted = (asked.version or "", asked.image or "")
    is_newest = all(not told or told == it for told, it in zip(wanted, _named(newest), strict=True))
    return None if is_newest else wanted


def _last_change(status: ClusterVersionStatus, created: datetime | None) -> datetime | None:
    """When the status last changed, as far as it tells."""
    newest = status.history[0]
    moments = [created, newest.started_time, newest.completion_time]
    moments += [condition.last_transition_time for condition in status.conditions]
    return max(filter(None, moments), default=None)


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
        "cluster_version_available_updates",
        "How many releases the cluster can move to, by the update service and the channel.",
        labels=["upstream", "channel"],
    )
    if version is not None and version.status is not None:
        source = [version.spec.upstream or "<default>", version.spec.channel or ""]
        found.add_metric(source, len(version.status.available_updates or ()))
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
        reason = available.reason if available else "NoAvailableCondition"
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
