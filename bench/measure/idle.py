"""Objects that are in order: what it costs to find that out, and to stand by them.

Two measurements on objects that the bare client has put in order, with an operator that therefore
has nothing to write: `start`, until it knows them all, and `settled`, for as long as nothing
happens.
"""

import asyncio
import time

import msgspec

from bench import writers
from bench.api import Api
from bench.cluster import Cluster, cluster
from bench.goals import COMPARING, settled_goals, start_goals
from bench.measure.run import Run, row
from bench.requests import counted, unprompted, writes
from bench.results import Column, Measurement, Row
from bench.subjects.catalogue import OPERATORS, Subject

HOUR = 3600
REST = 5.0
"""Seconds between being synced and being idle: each object is looked at once."""

SUBJECTS = tuple(one for one in OPERATORS if one.name in ("quarterdeck", COMPARING))

SETTLED_COLUMNS = [
    Column(figure="cpu_per_hour", title="CPU per hour", format=".1f", unit=" s"),
    Column(figure="watches_per_hour", title="watches per hour"),
    Column(figure="other_requests", title="other requests"),
    Column(figure="memory_mb", title="memory", unit=" MB"),
]

START_COLUMNS = [
    Column(figure="seconds", title="start → synced", format=".2f", unit=" s"),
    Column(figure="cpu", title="CPU until then", format=".2f", unit=" s"),
    Column(figure="peak_mb", title="peak memory", unit=" MB"),
    Column(figure="kb_per_object", title="memory per object", format=".1f", unit=" kB"),
    Column(figure="writes", title="writes"),
]


async def measure_settled(run: Run) -> list[Measurement]:
    """How much an operator with nothing to do does."""
    objects, seconds = run.sizes.reconcile_objects, run.sizes.settled_seconds
    rows = []
    async with cluster(run.directory / "settled") as server:
        run.say("settled: the objects")
        await in_order(server.api, range(objects))
        for subject in filter(lambda one: run.wanted(one.name), SUBJECTS):
            run.say(f"settled: {subject.name}")
            rows.append(await _settled(run, server, subject, seconds))
    found = Measurement(
        name="settled",
        title=f"settled: {objects:,} objects and their ConfigMaps, nothing happens",
        columns=SETTLED_COLUMNS,
        rows=rows,
        notes=[f"Measured over {seconds} s; what is given by the hour is scaled up from that."],
    )
    return [msgspec.structs.replace(found, verdicts=settled_goals(found))]


async def measure_start(run: Run) -> list[Measurement]:
    """How long it takes from the start of the process until all caches are synced."""
    objects = run.sizes.start_objects
    rows = []
    async with cluster(run.directory / "start") as server:
        run.say("start: the objects")
        await in_order(server.api, range(objects))
        for subject in filter(lambda one: run.wanted(one.name), SUBJECTS):
            run.say(f"start: {subject.name}")
            rows.append(await _start(run, server, subject))
    found = Measurement(
        name="start",
        title=f"start: {objects:,} objects and their ConfigMaps",
        columns=START_COLUMNS,
        rows=rows,
        notes=[
            "Memory per object: what the process holds more, after everything was looked at once, "
            "than with an empty server; an object is a Widget and its ConfigMap."
        ],
    )
    return [msgspec.structs.replace(found, verdicts=start_goals(found, objects))]


async def _settled(run: Run, server: Cluster, subject: Subject, seconds: int) -> Row:
    async def once() -> dict[str, float]:
        async with run.operator("settled", subject, server.kubeconfig) as process:
            await process.mark("synced", run.sizes.subject_limit)
            await asyncio.sleep(REST)
            requests, cpu = counted(await server.api.text("/metrics")), process.cpu()
            await asyncio.sleep(seconds)
            made = counted(await server.api.text("/metrics")) - requests
            watches = sum(n for one, n in made.items() if one.verb == "WATCH")
            return {
                "cpu_per_hour": (process.cpu() - cpu) * HOUR / seconds,
                "watches_per_hour": watches * HOUR / seconds,
                "other_requests": unprompted(made),
                "memory_mb": process.memory() / 1e6,
            }

    return await row(subject.name, 1, once)


async def _start(run: Run, server: Cluster, subject: Subject) -> Row:
    objects, limit = run.sizes.start_objects, run.sizes.subject_limit

    async def once() -> dict[str, float]:
        requests = counted(await server.api.text("/metrics"))
        began = time.time()
        async with run.operator("start", subject, server.kubeconfig) as process:
            synced = await process.mark("synced", limit)
            await asyncio.sleep(REST)
            held = process.memory()
            made = counted(await server.api.text("/metrics")) - requests
            return {
                "seconds": synced.at - began,
                "cpu": synced.cpu,
                "peak_mb": process.peak_memory() / 1e6,
                "held": held,
                "writes": writes(made),
            }

    found = await row(subject.name, run.sizes.start_repeats, once)
    if found.problem:
        return found
    empty = await _memory_when_empty(run, subject)
    each = (found.figures["held"] - empty) / objects / 1e3
    return msgspec.structs.replace(found, figures=found.figures | {"kb_per_object": each})


async def _memory_when_empty(run: Run, subject: Subject) -> int:
    async with (
        cluster(run.directory / f"empty-{SUBJECTS.index(subject)}") as server,
        run.operator("empty", subject, server.kubeconfig) as process,
    ):
        await process.mark("synced", run.sizes.subject_limit)
        await asyncio.sleep(1)
        return process.memory()


async def in_order(api: Api, indexes: range) -> None:
    """Objects as an operator would leave them."""

    async def create(index: int) -> None:
        await writers.bare_create(api, index, await writers.create_widget(api, index))

    await writers.for_all(indexes, create)
