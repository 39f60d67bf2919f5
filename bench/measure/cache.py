"""List objects, then follow events, from a load generator: how many a second, at what cost.

The clock runs from the generator's first event to the moment at which the subject is done with
the last. Subjects with a queue are done when the reconcile of every object has seen its last
state; the others when they have put the last event into their dictionary.
"""

import asyncio
import time
from pathlib import Path

import msgspec

from bench import widgets
from bench.arithmetic import ratio
from bench.goals import OURS, cache_goals
from bench.measure.run import Run, row
from bench.processes import running
from bench.results import Column, Measurement, Row
from bench.subjects.catalogue import CACHES, DRAIN, Subject

COLUMNS = [
    Column(figure="events_per_second", title="events/s"),
    Column(figure="slower", title="times slower", format=".1f"),
    Column(figure="cpu_per_event", title="CPU/event", scale=1e6, unit=" µs"),
    Column(figure="peak_mb", title="peak memory", unit=" MB"),
    Column(figure="start_seconds", title="start → listed", format=".2f", unit=" s"),
    Column(figure="runs", title="runs"),
]

BREATH = 0.5
"""Seconds between the list and the events, for what a subject does after a list."""


async def measure(run: Run) -> list[Measurement]:
    """All subjects, one after the other, each with a generator of its own."""
    sizes = run.sizes
    items, events = record(run.directory, sizes.cache_objects, sizes.cache_events)
    rows = []
    for subject in filter(lambda one: run.wanted(one.name), (*CACHES, DRAIN)):
        run.say(f"cache: {subject.name}")
        rows.append(await _measure(run, subject, items, events))
    found = Measurement(
        name="cache",
        title=f"cache: {sizes.cache_objects:,} objects listed, "
        f"{sizes.cache_events:,} events followed",
        columns=COLUMNS,
        rows=compared(rows),
        notes=[
            "Over TLS on loopback; generator and subject share the machine's cores.",
            "quarterdeck, controller-runtime and kopf: with queue and reconcile (or handler), "
            "which may see several events of an object at once; the others only put every "
            "event into a dictionary.",
        ],
    )
    return [msgspec.structs.replace(found, verdicts=cache_goals(found))]


def record(directory: Path, objects: int, events: int) -> tuple[Path, Path]:
    """Write what the generator will serve, once for all subjects."""
    files = directory / "items.jsonl", directory / "events.jsonl"
    with files[0].open("wb") as out:
        out.writelines(widgets.recorded_items(objects))
    with files[1].open("wb") as out:
        out.writelines(widgets.recorded_events(objects, events))
    return files


async def _measure(run: Run, subject: Subject, items: Path, events: Path) -> Row:
    command = subject.start_with(run.tools)
    if isinstance(command, str):
        return Row(subject=subject.name, problem=command, missing=True)
    if isinstance(run.tools.go, str):
        return Row(subject=subject.name, problem=f"no load generator: {run.tools.go}")
    repeats = 1 if subject.slow else run.sizes.cache_repeats

    async def once() -> dict[str, float]:
        return await _once(run, subject, command, items, events)

    return await row(subject.name, repeats, once)


async def _once(
    run: Run, subject: Subject, command: list[str], items: Path, events: Path
) -> dict[str, float]:
    sizes, limit = run.sizes, run.sizes.subject_limit
    kubeconfig = run.directory / "generator.kubeconfig"
    generator = [str(run.tools.go), "replay", "--items", str(items), "--events", str(events)]
    generator += ["--version", str(widgets.FIRST_VERSION), "--kubeconfig", str(kubeconfig)]
    workload = {
        "--kubeconfig": str(kubeconfig),
        "--objects": str(sizes.cache_objects),
        "--events": str(sizes.cache_events),
        "--last-round": str(sizes.cache_events // sizes.cache_objects),
        "--version": str(widgets.FIRST_VERSION),
    }
    flags = [part for flag in workload.items() for part in flag]
    async with running("generator", generator, run.log("cache", "generator")) as server:
        await server.mark("listening", limit)
        begin = time.time()
        env = {"KUBECONFIG": str(kubeconfig)}
        log = run.log("cache", subject.name)
        async with running(subject.name, [*command, *flags], log, env) as client:
            synced = await client.mark("synced", limit)
            await server.mark("watched", limit)
            await asyncio.sleep(BREATH)
            cpu = client.cpu()
            await server.say("go")
            started = await server.mark("started", limit)
            done = await client.mark("done", limit)
            return {
                "events_per_second": sizes.cache_events / (done.at - started.at),
                "cpu_per_event": (done.cpu - cpu) / sizes.cache_events,
                "peak_mb": client.peak_memory() / 1e6,
                "start_seconds": synced.at - begin,
                "runs": done.seen,
            }


def compared(rows: list[Row]) -> list[Row]:
    """The rows with how many times slower than ours they are."""
    ours = next((one.figures.get("events_per_second") for one in rows if one.subject == OURS), None)
    return [
        msgspec.structs.replace(one, figures=one.figures | {"slower": times})
        if (times := ratio(ours, one.figures.get("events_per_second"))) is not None
        else one
        for one in rows
    ]
