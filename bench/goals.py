"""Which figures are good enough. Pure: measurements in, verdicts out."""

from collections.abc import Iterable, Sequence

from bench.arithmetic import ratio
from bench.results import Measurement, Verdict

OURS = "quarterdeck"
REFERENCE, COMPARING = "controller-runtime", "controller-runtime, comparing"
"""As its tutorials write an operator, and by a careful author who compares before a write."""
APPLYING = "controller-runtime, applying"
"""By an author who also writes as we do, by server-side apply, which costs the server more."""
BARE, BARE_APPLYING = "bare client", "bare client, applying"
PYTHON_PEERS = ("lightkube", "kubernetes", "kubernetes-asyncio", "kr8s", "kopf")


def at_least(goal: str, wanted: float, reached: float | None, unit: str = "times") -> Verdict:
    """A goal that more is better for."""
    met = reached is not None and reached >= wanted
    return Verdict(goal=goal, wanted=f"≥ {wanted:g}", reached=reached, met=met, unit=unit)


def at_most(goal: str, wanted: float, reached: float | None, unit: str = "times") -> Verdict:
    """A goal that less is better for."""
    met = reached is not None and reached <= wanted
    return Verdict(goal=goal, wanted=f"≤ {wanted:g}", reached=reached, met=met, unit=unit)


def cache_goals(found: Measurement) -> list[Verdict]:
    """Events a second against all peers; memory against the leanest."""

    def figures(name: str, subjects: Iterable[str]) -> list[float]:
        return [value for one in subjects if (value := found.figure(one, name)) is not None]

    rate = found.figure(OURS, "events_per_second")
    memory = found.figure(OURS, "peak_mb")
    fastest = max(figures("events_per_second", PYTHON_PEERS), default=None)
    leanest = min(figures("peak_mb", (*PYTHON_PEERS, REFERENCE)), default=None)
    kopf = found.figure("kopf", "events_per_second")
    reference = found.figure(REFERENCE, "events_per_second")
    return [
        at_least("events/s, to the fastest Python peer", 1.7, ratio(rate, fastest)),
        at_least("events/s, to kopf", 25, ratio(rate, kopf)),
        at_least(f"events/s, to {REFERENCE}", 3, ratio(rate, reference)),
        at_most("peak memory, to the leanest peer", 1, ratio(memory, leanest)),
    ]


def reconcile_goals(found: Measurement) -> list[Verdict]:
    """Throughput against a bare client and the reference; no write too many."""

    def speed(subject: str, phase: str) -> float | None:
        return found.figure(subject, f"{phase}_per_second")

    verdicts = [
        at_least(f"{phase}, to the bare client", 0.8, ratio(speed(OURS, phase), speed(BARE, phase)))
        for phase in ("created", "changed")
    ]
    applied = ratio(speed(OURS, "changed"), speed(BARE_APPLYING, "changed"))
    verdicts.append(at_least("changed, to the bare client that applies as we do", 0.8, applied))
    for phase, wanted in (("created", 1.2), ("changed", 0.95)):
        reached = ratio(speed(OURS, phase), speed(REFERENCE, phase))
        verdicts.append(at_least(f"{phase}, to {REFERENCE}", wanted, reached))
    for phase in ("created", "changed"):
        extra = found.figure(OURS, f"{phase}_extra_writes")
        verdicts.append(at_most(f"{phase}: writes beyond the needed", 0, extra, "writes"))
    return verdicts


def latency_goals(found: Measurement) -> list[Verdict]:
    """The slowest of a hundred, while idle."""
    ours = found.figure(OURS, "idle_p99")
    return [
        at_most("p99, idle", 50, None if ours is None else ours * 1000, "ms"),
        *(
            at_most(f"p99, idle, to {peer}", 1, ratio(ours, found.figure(peer, "idle_p99")))
            for peer in (COMPARING, APPLYING)
        ),
    ]


def settled_goals(found: Measurement) -> list[Verdict]:
    """An operator with nothing to do asks for nothing."""
    other = found.figure(OURS, "other_requests")
    return [at_most("requests that are not watches or leases", 0, other, "requests")]


START_OBJECTS, START_SECONDS = 10_000, 1.35 / 2
"""Half of what a start with so many objects once took; most of fewer is the start of Python."""


def start_goals(found: Measurement, objects: int) -> list[Verdict]:
    """An operator that is started again finds everything in order, and soon."""
    ours = found.figure(OURS, "seconds")
    verdicts = [
        at_most("writes at a start with nothing to do", 0, found.figure(OURS, "writes"), ""),
        at_most(f"start, to {COMPARING}", 1, ratio(ours, found.figure(COMPARING, "seconds"))),
    ]
    if objects == START_OBJECTS:
        goal = f"start with {objects:,} objects, to {START_SECONDS:g} s"
        verdicts.append(at_most(goal, 1, ratio(ours, START_SECONDS)))
    return verdicts


def scale_goals(found: Measurement, sizes: Sequence[int]) -> list[Verdict]:
    """An object among many costs no more than one among fewer, and none more than the reference's.

    The rows are those of `at_size`; the last two sizes are compared.
    """
    if len(sizes) < 2:
        return []
    *_, fewer, many = sizes

    def of(subject: str, objects: int, figure: str) -> float | None:
        return found.figure(at_size(subject, objects), figure)

    each = (
        ("start per object", "start_per_object"),
        ("memory per object", "kb_per_object"),
        ("CPU per event", "cpu_per_event"),
    )
    to_reference = ratio(of(OURS, many, "kb_per_object"), of(COMPARING, many, "kb_per_object"))
    return [
        *(
            at_most(
                f"{what}, {many:,} to {fewer:,} objects",
                1,
                ratio(of(OURS, many, figure), of(OURS, fewer, figure)),
            )
            for what, figure in each
        ),
        at_most(f"memory per object at {many:,}, to {COMPARING}", 1, to_reference),
    ]


def at_size(subject: str, objects: int) -> str:
    """The row of a subject with so many objects."""
    return f"{subject}: {objects:,}"
