"""What the checker tells Prometheus about each cluster operator."""

from prometheus_client import CollectorRegistry, Gauge

from quarterdeck.operators.staleness.decide import Decision, State
from quarterdeck.operators.staleness.evidence import LONG_AGO


class Gauges:
    """Two numbers for each ClusterOperator that is watched."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._stale = Gauge(
            "cluster_operator_stale",
            "1 for an operator that was given up because it no longer updates its conditions.",
            ["name"],
            registry=registry,
        )
        self._alive = Gauge(
            "cluster_operator_last_proven_alive_timestamp_seconds",
            "When the operator last gave a sign of life.",
            ["name"],
            registry=registry,
        )

    def show(self, name: str, decision: Decision) -> None:
        """Set the numbers of one operator."""
        if decision.state is State.UNWATCHED:
            self.forget(name)
            return
        self._stale.labels(name).set(decision.state is State.STALE)
        alive = decision.evidence.alive.time
        if alive > LONG_AGO:
            self._alive.labels(name).set(alive.timestamp())

    def forget(self, name: str) -> None:
        """The operator is gone, or has nothing to watch."""
        for gauge in (self._stale, self._alive):
            if (name,) in gauge._metrics:  # noqa: SLF001 - there is no public way to ask
                gauge.remove(name)
