"""The checker's metrics: about each cluster operator, and about itself."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quarterdeck.operators.staleness.decide import CheckState, Decision
from quarterdeck.operators.staleness.settings import Settings


class Gauges(Collector):
    """The metrics of each watched ClusterOperator; none while the checker has no watch."""

    def __init__(
        self, registry: CollectorRegistry, settings: Settings, last_look: Callable[[], float]
    ) -> None:
        """`last_look` returns when the checker could last read and write, in seconds since 1970."""
        self._settings = settings
        self._last_look = last_look
        self._shown: dict[str, Decision] = {}
        self.blind: Callable[[], bool] = lambda: False
        registry.register(self)

    def show(self, name: str, decision: Decision) -> None:
        """Set the metrics of one operator."""
        if decision.state is CheckState.UNWATCHED:
            self.forget(name)
        else:
            self._shown[name] = decision

    def forget(self, name: str) -> None:
        """Remove the metrics of an operator that is gone or has no watched condition."""
        self._shown.pop(name, None)

    def collect(self) -> Iterator[Metric]:
        """The current metrics."""
        shown = {} if self.blind() else self._shown
        stale = GaugeMetricFamily(
            "cluster_operator_stale",
            "1 for an operator that was given up because it no longer updates its conditions.",
            labels=["name"],
        )
        alive = GaugeMetricFamily(
            "cluster_operator_last_proven_alive_timestamp_seconds",
            "When the operator last gave a sign of life; 0 if that cannot be told.",
            labels=["name"],
        )
        mute = GaugeMetricFamily(
            "cluster_operator_cannot_be_checked",
            "1 for an operator that has no way to answer, so that it is not asked.",
            labels=["name"],
        )
        for name, decision in shown.items():
            stale.add_metric([name], decision.state is CheckState.STALE)
            alive.add_metric([name], decision.evidence.alive.time.timestamp())
            mute.add_metric([name], decision.state is CheckState.UNCHECKABLE)
        yield from (stale, alive, mute)
        yield GaugeMetricFamily(
            "staleness_checker_last_look_timestamp_seconds",
            "When the checker last could see the cluster operators and write to them.",
            value=self._last_look(),
        )
        yield GaugeMetricFamily(
            "staleness_checker_interval_seconds",
            "How long an operator may be silent before it is asked.",
            value=self._settings.interval.total_seconds(),
        )
        yield GaugeMetricFamily(
            "staleness_checker_keeps_upgradeable_false",
            "1 for a checker that leaves an Upgradeable=False alone.",
            value=self._settings.keep_upgradeable_false,
        )
