"""What the checker tells Prometheus about each cluster operator."""

from prometheus_client import CollectorRegistry, Gauge

from quarterdeck.operators.staleness.decide import Decision, State


class Gauges:
    """Two numbers for each ClusterOperator that is watched."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._shown: set[str] = set()
        self._stale = Gauge(
            "cluster_operator_stale",
            "1 for an operator that was given up because it no longer updates its conditions.",
            ["name"],
            registry=registry,
        )
        self._alive = Gauge(
            "cluster_operator_last_proven_alive_timestamp_seconds",
            "When the operator last gave a sign of life; 0 if that cannot be told.",
            ["name"],
            registry=registry,
        )

    def show(self, name: str, decision: Decision) -> None:
        """Set the numbers of one operator."""
        if decision.state is State.UNWATCHED:
            self.forget(name)
            return
        self._shown.add(name)
        self._stale.labels(name).set(decision.state is State.STALE)
        self._alive.labels(name).set(decision.evidence.alive.time.timestamp())

    def forget(self, name: str) -> None:
        """The operator is gone, or has nothing to watch."""
        if name in self._shown:
            self._shown.remove(name)
            self._stale.remove(name)
            self._alive.remove(name)
