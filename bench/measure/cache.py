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
    recording = record(run.directory, sizes.cache_objects, sizes.cache_events)
    rows = []
    for subject in filter(lambda one: run.wanted(one.name), (*CACHES, DRAIN)):
        run.say(f"cache: {subject.name}")
        rows.append(await _measure(run, subject, recording))
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


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """What the generator serves."""

    objects: int
    events: int
    """Whole rounds: a multiple of the objects."""
    items_file: Path
    events_file: Path


def record(directory: Path, objects: int, events: int) -> Recording:
    """Write what the generator will serve, once for all subjects."""
    items_file, events_file = directory / "items.jsonl", directory / "events.jsonl"
    with items_file.open("wb") as out:
        out.writelines(widgets.recorded_items(objects))
    with events_file.open("wb") as out:
        out.writelines(widgets.recorded_events(objects, events))
    return Recording(objects=objects, events=events, items_file=items_file, events_file=events_file)


async def _measure(run: Run, subject: Subject, recording: Recording) -> Row:
    command = subject.start_with(run.tools)
    if isinstance(command, str):
        return Row(subject=subject.name, problem=command, missing=True)
    if isinstance(run.tools.go, str):
        return Row(subject=subject.name, problem=f"no load generator: {run.tools.go}")
    repeats = 1 if subject.slow else run.sizes.cache_repeats

    async def once() -> dict[str, float]:
        return await follow(run, subject, command, recording)

    return await row(subject.name, repeats, once)


async def follow(
    run: Run, subject: Subject, command: list[str], recording: Recording, part: str = "cache"
) -> dict[str, float]:
    """What it cost a subject to list the recorded objects and to follow the events."""
    limit = run.sizes.subject_limit
    kubeconfig = run.directory / "generator.kubeconfig"
    generator = [str(run.tools.go), "replay"]
    generator += ["--items", str(recording.items_file), "--events", str(recording.events_file)]
    generator += ["--version", str(widgets.FIRST_VERSION), "--kubeconfig", str(kubeconfig)]
    workload = {
        "--kubeconfig": str(kubeconfig),
        "--objects": str(recording.objects),
        "--events": str(recording.events),
        "--last-round": str(recording.events // recording.objects),
        "--version": str(widgets.FIRST_VERSION),
    }
    flags = [part for flag in workload.items() for part in flag]
    async with running("generator", generator, run.log(part, "generator")) as server:
        await server.mark("listening", limit)
        begin = time.time()
        env = {"KUBECONFIG": str(kubeconfig)}
        log = run.log(part, subject.name)
        async with running(subject.name, [*command, *flags], log, env) as client:
            synced = await client.mark("synced", limit)
            await server.mark("watched", limit)
            await asyncio.sleep(BREATH)
            cpu = client.cpu()
            await server.say("go")
            started = await server.mark("started", limit)
            done = await client.mark("done", limit)
            return {
                "events_per_second": recording.events / (done.at - started.at),
                "cpu_per_event": (done.cpu - cpu) / recording.events,
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
