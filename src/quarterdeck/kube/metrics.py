"""Counts requests under the name that dashboards know: `rest_client_requests_total`."""

from prometheus_client import CollectorRegistry, Counter


class RequestMetrics:
    """One counter for all clients of a process; labels are looked up once per combination."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counter = Counter(
            "rest_client_requests_total",
            "Number of HTTP requests, partitioned by status code, method, and host.",
            ["code", "method", "host"],
            registry=registry,
        )
        # Binding labels costs three times as much as counting.
        self._bound: dict[tuple[str, str, str], Counter] = {}

    def count(self, code: str, method: str, host: str) -> None:
        """Count one answered request; the code of an unanswered one is `<error>`."""
        labels = (code, method, host)
        counter = self._bound.get(labels)
        if counter is None:
            counter = self._bound[labels] = self._counter.labels(*labels)
        counter.inc()
