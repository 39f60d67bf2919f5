"""A Prometheus beside the control plane, which scrapes the pods of an installation."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.cluster import RealCluster, tied
from tests.prometheus_process import Prometheus, prometheus, staleness_rules, targets_of


@contextmanager
def monitored(
    cluster: RealCluster, namespaces: Iterable[str], directory: Path
) -> Iterator[Prometheus]:
    """Prometheus in the cluster's network, with the delivered configuration and staleness rules.

    The rules have the durations with which they are delivered.
    """
    pods = [pod for namespace in namespaces for pod in cluster.pods(namespace)]

    def fetch(page: str) -> bytes | None:
        curl = ("curl", "--silent", "--fail", "--max-time", "60", f"http://{page}")
        return cluster.run(*curl, inside=True, check=False).encode() or None

    rules = staleness_rules(shorter={})
    with prometheus(
        directory, targets_of(pods), rules, prefix=tied(*cluster.enter), fetch=fetch
    ) as running:
        yield running


def stale_operators(monitoring: Prometheus) -> list[str]:
    """The operators for which the alert ClusterOperatorStale fires."""
    wanted = ("ClusterOperatorStale", "firing")
    return [name for alert, state, name in monitoring.alerts() if (alert, state) == wanted]
