"""How much is measured: the sizes of the full run, of the quick one, and of a try."""

import msgspec


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """How many objects, events, samples and seconds each measurement takes."""

    cache_objects: int
    cache_events: int
    cache_repeats: int
    """For subjects that take seconds; those that take a minute run once."""
    reconcile_objects: int
    latency_objects: int
    latency_samples: int
    latency_rounds: int
    """Subjects take turns; the samples of all rounds count as one."""
    busy_seconds: float
    """For samples with a background, in each round."""
    background_rate: int
    """Changes a second beside the measured ones."""
    settled_seconds: int
    start_objects: int
    start_repeats: int
    scale_objects: tuple[int, ...]
    """Growing numbers of objects, each measured in turn."""
    scale_events: int
    """At least so many events for each number of objects, in whole rounds."""
    scale_samples: int
    subject_limit: float
    """Seconds after which a subject in one phase counts as hung."""


FULL = Sizes(
    cache_objects=10_000,
    cache_events=50_000,
    cache_repeats=2,
    reconcile_objects=5_000,
    latency_objects=500,
    latency_samples=300,
    latency_rounds=3,
    busy_seconds=7,
    background_rate=500,
    settled_seconds=20,
    start_objects=10_000,
    start_repeats=1,
    scale_objects=(1_000, 10_000, 100_000),
    scale_events=50_000,
    scale_samples=100,
    subject_limit=150,
)

QUICK = Sizes(
    cache_objects=1_000,
    cache_events=5_000,
    cache_repeats=1,
    reconcile_objects=200,
    latency_objects=30,
    latency_samples=30,
    latency_rounds=1,
    busy_seconds=2,
    background_rate=500,
    settled_seconds=3,
    start_objects=500,
    start_repeats=1,
    scale_objects=(200, 1_000),
    scale_events=5_000,
    scale_samples=20,
    subject_limit=60,
)

TRY = Sizes(
    cache_objects=200,
    cache_events=1_000,
    cache_repeats=1,
    reconcile_objects=50,
    latency_objects=20,
    latency_samples=20,
    latency_rounds=1,
    busy_seconds=2,
    background_rate=50,
    settled_seconds=3,
    start_objects=200,
    start_repeats=1,
    scale_objects=(50, 200),
    scale_events=1_000,
    scale_samples=10,
    subject_limit=30,
)
