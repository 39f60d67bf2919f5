"""The router's metrics."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric


Figure = tuple[str, str, Callable[[], float]]
"""A counter: its name, its help text, and what a scrape calls for its value."""


def add_metrics(registry: "CollectorRegistry", figures: Iterable[Figure]) -> None:
    """Add these counters."""
    from prometheus_client.core import CounterMetricFamily

    given = tuple(figures)

    class Figures:
        def collect(self) -> "Iterable[Metric]":
            for name, text, number in given:
                yield CounterMetricFamily(name, text, value=number())

    registry.register(Figures())
