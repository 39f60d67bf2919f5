"""How cost grows with the number of objects: ours beside controller-runtime, size after size.

One API server grows from size to size; at each, an operator is started on objects that are in
order: how long until its caches hold them, what it holds when it has looked at each once, and how
long one change takes to its effect. Events a second come from the load generator, as in `cache`,
with as many objects, because an API server makes fewer than either side takes.
"""

import asyncio
import itertools
import math
import time
from collections.abc import Iterator

import msgspec

from bench.arithmetic import percentile
from bench.cluster import Cluster, cluster
from bench.copies import Etcd, copy
from bench.goals import COMPARING, OURS, REFERENCE, at_size, scale_goals
from bench.measure.cache import Recording, follow, record
from bench.measure.idle import in_order
from bench.measure.latency import sample
from bench.measure.run import Run, row
from bench.observer import Observer
from bench.processes import Process, SubjectFailed
from bench.results import Column, Measurement, Row
from bench.subjects.catalogue import CACHES, OPERATORS, Subject

Pair = tuple[Subject, Subject]
"""An operator, and the same side's subject of the `cache` part."""

LOOK = 1.0
"""Seconds between two looks at whether an operator still works."""
MANY = 10_000
"""Objects from which on the limit of a phase grows with them."""
QUIET_LOOKS = 5
"""Looks in a row: on a busy machine an operator may get no CPU for a second."""
RESTING = 0.03
"""CPU seconds in a second: with less, an operator has looked at everything."""

COLUMNS = [
    Column(figure="start_seconds", title="start → synced", format=".2f", unit=" s"),
    Column(figure="start_per_object", title="per object", scale=1e6, unit=" µs"),
    Column(figure="rest_cpu", title="CPU, each seen once", format=".1f", unit=" s"),
    Column(figure="memory_mb", title="memory", unit=" MB"),
    Column(figure="kb_per_object", title="per object", format=".1f", unit=" kB"),
    Column(figure="events_per_second", title="events/s"),
    Column(figure="cpu_per_event", title="CPU/event", scale=1e6, unit=" µs"),
    Column(figure="effect_p50", title="change → effect p50", format=".1f", scale=1e3, unit=" ms"),
    Column(figure="effect_p99", title="p99", format=".1f", scale=1e3, unit=" ms"),
]


async def measure(run: Run) -> list[Measurement]:
    """Every size for each side, on one API server that grows."""
    sizes = run.sizes.scale_objects
    pairs = [one for one in _pairs() if run.wanted(one[0].name)]
    rows: list[Row] = []
    rounds = itertools.count(1, run.sizes.scale_samples)
    async with cluster(run.directory / "scale") as server:
        empty = {operator.name: await _empty(run, server, operator) for operator, _ in pairs}
        made = 0
        for objects in sizes:
            run.say(f"scale: {objects:,} objects")
            await _make(server, range(made), range(made, objects))
            made = objects
            for operator, _ in pairs:
                run.say(f"scale: {operator.name} with {objects:,} objects")
                rows.append(await _operator(run, server, operator, objects, rounds, empty))
    # After that API server has gone: generator and subject have the machine for themselves.
    for objects in sizes:
        recording = record(run.directory, objects, events_for(objects, run.sizes.scale_events))
        for operator, follower in pairs:
            run.say(f"scale: events of {objects:,} objects to {operator.name}")
            followed = await _events(run, follower, recording)
            rows = [joined(one, followed, at_size(operator.name, objects)) for one in rows]
    found = Measurement(
        name="scale",
        title=f"scale: {', '.join(f'{size:,}' for size in sizes)} objects and their ConfigMaps",
        columns=COLUMNS,
        rows=rows,
        notes=[
            "An object is a Widget and its ConfigMap. Memory: held after each was looked at once; "
            "per object, less what the same process holds with an empty server.",
            "Events/s and CPU/event: Widgets only, from the load generator.",
        ],
    )
    return [msgspec.structs.replace(found, verdicts=scale_goals(found, sizes))]


async def _make(server: Cluster, made: range, wanted: range) -> None:
    """Objects that are in order: the first are written, the others are copies of those."""
    if not made:
        await in_order(server.api, wanted)
        return
    async with Etcd.open(server.etcd) as etcd:
        await copy(etcd, made, wanted)


def events_for(objects: int, least: int) -> int:
    """At least so many events, in whole rounds."""
    return objects * math.ceil(least / objects)


def _pairs() -> list[Pair]:
    operators = {one.name: one for one in OPERATORS}
    followers = {one.name: one for one in CACHES}
    return [(operators[OURS], followers[OURS]), (operators[COMPARING], followers[REFERENCE])]


async def _empty(run: Run, server: Cluster, operator: Subject) -> float | None:
    """The bytes that an operator holds without objects; None if it cannot be started."""
    try:
        async with run.operator("scale", operator, server.kubeconfig) as process:
            await process.mark("synced", run.sizes.subject_limit)
            await asyncio.sleep(LOOK)
            return process.memory()
    except SubjectFailed:
        return None


async def _operator(
    run: Run,
    server: Cluster,
    operator: Subject,
    objects: int,
    rounds: Iterator[int],
    empty: dict[str, float | None],
) -> Row:
    """One operator with so many objects that are in order."""
    limit = run.sizes.subject_limit * max(1, objects // MANY)
    samples = run.sizes.scale_samples
    before = empty[operator.name]

    async def once() -> dict[str, float]:
        began = time.time()
        async with run.operator("scale", operator, server.kubeconfig) as process:
            synced = await process.mark("synced", limit)
            await _at_rest(process, limit)
            held, cpu = process.memory(), process.cpu()
            spread = range(0, objects, max(1, objects // samples))
            # A watch that begins now, so that it has no news of the objects being made.
            async with Observer.watching(server.api) as observer:
                effects, _ = await sample(server, observer, spread, samples, next(rounds), math.inf)
        figures = {
            "start_seconds": synced.at - began,
            "start_per_object": (synced.at - began) / objects,
            "rest_cpu": cpu,
            "memory_mb": held / 1e6,
            "effect_p50": percentile(effects, 50),
            "effect_p99": percentile(effects, 99),
        }
        return (
            figures
            if before is None
            else figures | {"kb_per_object": (held - before) / objects / 1e3}
        )

    return await row(at_size(operator.name, objects), 1, once)


async def _at_rest(process: Process, limit: float) -> None:
    """Return when the operator has nothing more to do: it was told of every object at its start."""
    end, used, quiet = time.monotonic() + limit, process.cpu(), 0
    while time.monotonic() < end:
        await asyncio.sleep(LOOK)
        before, used = used, process.cpu()
        quiet = quiet + 1 if used - before < RESTING * LOOK else 0
        if quiet == QUIET_LOOKS:
            return
    raise SubjectFailed(f"still busy {limit:g} s after it was synced")


async def _events(run: Run, follower: Subject, recording: Recording) -> Row:
    command = follower.start_with(run.tools)
    if isinstance(command, str):
        return Row(subject=follower.name, problem=command, missing=True)
    if isinstance(run.tools.go, str):
        return Row(subject=follower.name, problem=f"no load generator: {run.tools.go}")

    async def once() -> dict[str, float]:
        figures = await follow(run, follower, command, recording, part="scale-events")
        return {name: figures[name] for name in ("events_per_second", "cpu_per_event")}

    return await row(follower.name, 1, once)


def joined(one: Row, followed: Row, subject: str) -> Row:
    """The row of this subject with what its other half measured; another row as it is."""
    if one.subject != subject:
        return one
    problem = "; ".join(dict.fromkeys(text for text in (one.problem, followed.problem) if text))
    figures = one.figures | followed.figures
    missing = one.missing or followed.missing
    return msgspec.structs.replace(one, figures=figures, problem=problem, missing=missing)
