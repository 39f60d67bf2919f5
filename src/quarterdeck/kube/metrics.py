"""Counts requests under the name that dashboards know: `rest_client_requests_total`.

Plain integers count them, which become Prometheus samples at a scrape, so a client needs no
library.
"""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector
else:
    Collector = object  # a registry takes whatever can `collect`


class _Count:
    __slots__ = ("created", "number")

    def __init__(self) -> None:
        self.number = 0
        self.created = time.time()  # noqa: TID251 - of this process


class RequestMetrics(Collector):
    """Counts the requests of all clients of a process."""

    def __init__(self, registry: "CollectorRegistry | None" = None) -> None:
        """Register with this registry; without one, the caller registers the counter later."""
        self._counts: dict[tuple[str, str, str], _Count] = {}
        if registry is not None:
            registry.register(self)

    def count(self, code: str, method: str, host: str) -> None:
        """Count one request; the code of a request without an answer is `<error>`."""
        labels = (code, method, host)
        count = self._counts.get(labels)
        if count is None:
            count = self._counts[labels] = _Count()
        count.number += 1

    def collect(self) -> "Iterable[Metric]":
        """The numbers as they are now."""
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            labels=["code", "method", "host"],
        )
        for labels, count in list(self._counts.items()):
            family.add_metric(labels, count.number, created=count.created)
        yield family
