"""The metrics, under the names that dashboards for controller-runtime know.

The hot paths count in plain integers, which become Prometheus samples only at a scrape. Each
process object has its own registry, so two never mix.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from quarterdeck.api.meta import Key
from quarterdeck.kube import RequestMetrics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric
    from prometheus_client.registry import Collector
else:
    Collector = object  # a registry takes whatever can `collect`

BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The upper bounds of the buckets in seconds."""


class Histogram:
    """Counts durations in buckets; one takes a third of a microsecond."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """The counts as Prometheus has them: each includes all lower buckets."""
        running = 0
        rows: list[tuple[str, float]] = []
        for bound, number in zip([*map(str, BOUNDS), "+Inf"], self.counts, strict=True):
            running += number
            rows.append((bound, running))
        return rows


class QueueFigures(Protocol):
    """The counters of a work queue."""

    adds: int
    retries: int
    queue_seconds: Histogram
    work_seconds: Histogram

    def __len__(self) -> int:
        """How many keys are ready."""

    @property
    def running(self) -> dict[Key, float]:
        """The keys that run, and since when."""


class ControllerFigures:
    """The counters of one controller."""

    def __init__(self, name: str, workers: int, queue: QueueFigures) -> None:
        self.name = name
        self.workers = workers
        self.queue = queue
        self.results = {"success": 0, "requeue_after": 0, "error": 0}
        self.terminal = 0  # errors that are not retried until the object changes


class ControllerCollector(Collector):
    """Turns the counters of all controllers into samples at a scrape."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._controllers: list[ControllerFigures] = []

    def add(self, figures: ControllerFigures) -> None:
        """Include these figures from now on."""
        self._controllers.append(figures)

    def remove(self, figures: ControllerFigures) -> None:
        """Remove these figures: their controller was stopped."""
        self._controllers.remove(figures)

    def collect(self) -> "Iterable[Metric]":
        """All samples of all controllers."""
        yield from self._reconciles()
        yield from self._queues()

    def _reconciles(self) -> "Iterable[Metric]":
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        total = CounterMetricFamily(
            "controller_runtime_reconcile_total",
            "Reconciles by result.",
            labels=["controller", "result"],
        )
        errors = CounterMetricFamily(
            "controller_runtime_reconcile_errors_total",
            "Reconciles that failed.",
            labels=["controller"],
        )
        terminal = CounterMetricFamily(
            "controller_runtime_terminal_reconcile_errors_total",
            "Failed reconciles that are not tried again until the object changes.",
            labels=["controller"],
        )
        seconds = HistogramMetricFamily(
            "controller_runtime_reconcile_time_seconds",
            "How long a reconcile took.",
            labels=["controller"],
        )
        active = GaugeMetricFamily(
            "controller_runtime_active_workers", "Workers that run now.", labels=["controller"]
        )
        workers = GaugeMetricFamily(
            "controller_runtime_max_concurrent_reconciles", "Workers.", labels=["controller"]
        )
        for it in self._controllers:
            for result, number in it.results.items():
                total.add_metric([it.name, result], number)
            errors.add_metric([it.name], it.results["error"])
            terminal.add_metric([it.name], it.terminal)
            work = it.queue.work_seconds
            seconds.add_metric([it.name], work.buckets(), work.total)
            active.add_metric([it.name], len(it.queue.running))
            workers.add_metric([it.name], it.workers)
        yield from (total, errors, terminal, seconds, active, workers)

    def _queues(self) -> "Iterable[Metric]":
        from prometheus_client.core import (
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        now = self._clock()
        labels = ["name", "controller"]
        depth = GaugeMetricFamily("workqueue_depth", "Keys that are ready.", labels=labels)
        adds = CounterMetricFamily("workqueue_adds_total", "Keys added.", labels=labels)
        retries = CounterMetricFamily("workqueue_retries_total", "Keys retried.", labels=labels)
        waited = HistogramMetricFamily(
            "workqueue_queue_duration_seconds", "How long a key was ready.", labels=labels
        )
        worked = HistogramMetricFamily(
            "workqueue_work_duration_seconds", "How long a key ran.", labels=labels
        )
        unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds", "How long keys have run, summed.", labels=labels
        )
        longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds",
            "How long the slowest key has run.",
            labels=labels,
        )
        for it in self._controllers:
            names = [it.name, it.name]
            running = [now - since for since in it.queue.running.values()]
            depth.add_metric(names, len(it.queue))
            adds.add_metric(names, it.queue.adds)
            retries.add_metric(names, it.queue.retries)
            for family, times in (
                (waited, it.queue.queue_seconds),
                (worked, it.queue.work_seconds),
            ):
                family.add_metric(names, times.buckets(), times.total)
            unfinished.add_metric(names, sum(running))
            longest.add_metric(names, max(running, default=0.0))
        yield from (depth, adds, retries, waited, worked, unfinished, longest)


class Gauge(Collector):
    """A gauge whose value for each label a function returns."""

    def __init__(self, name: str, text: str, label: str) -> None:
        self._family = (name, text, label)
        self._values: dict[str, Callable[[], float]] = {}

    def watch(self, value: str, number: Callable[[], float]) -> None:
        """Call this function for the number of this label value."""
        self._values[value] = number

    def collect(self) -> "Iterable[Metric]":
        """The numbers as they are now."""
        from prometheus_client.core import GaugeMetricFamily

        name, text, label = self._family
        family = GaugeMetricFamily(name, text, labels=[label])
        for value, number in self._values.items():
            family.add_metric([value], number())
        yield family


class Metrics:
    """The metrics of a process's controllers, clients and leader elections, and their registry."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.controllers = ControllerCollector(clock)
        self.requests = RequestMetrics()
        self.leaders = Gauge(
            "leader_election_master_status", "1 for the replica that leads, else 0.", "name"
        )

    @cached_property
    def registry(self) -> "CollectorRegistry":
        """The registry; made at the first use, because its library takes long to import."""
        from prometheus_client import (
            CollectorRegistry,
            GCCollector,
            PlatformCollector,
            ProcessCollector,
        )

        registry = CollectorRegistry()
        registry.register(self.controllers)
        registry.register(self.leaders)
        registry.register(self.requests)
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        return registry
