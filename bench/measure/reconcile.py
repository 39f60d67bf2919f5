"""Objects created, then all changed, on a real API server: how fast an operator keeps up.

A user creates Widgets as fast as the server takes them, while the operator runs; the clock stops
when an observer has seen the last one settle. Then the user changes one field in all of them. The
bare client makes the same writes, the user's included, with nothing to find out.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import msgspec

from bench import writers
from bench.api import Api
from bench.arithmetic import ratio
from bench.cluster import Cluster, cluster
from bench.goals import BARE, BARE_APPLYING, reconcile_goals
from bench.measure.run import Run, row
from bench.observer import Observer
from bench.processes import Process
from bench.requests import Request, counted, writes
from bench.results import Column, Measurement, Row
from bench.subjects.catalogue import OPERATORS, Subject

NEEDED = 2
"""Writes that an operator needs for an object that is new or changed: ConfigMap and status."""

CANARY = 99_999
"""An object beside the counted ones that tells when an operator is at work."""

CONCURRENCIES = (16, 32, 64)
SLOW_SHARE = 5
"""A slow subject gets so many times fewer objects."""

COLUMNS = [
    Column(figure="created_per_second", title="created/s"),
    Column(figure="created_ratio", title="to bare", format=".2f"),
    Column(figure="created_extra_writes", title="extra writes"),
    Column(figure="created_cpu", title="CPU", format=".1f", unit=" s"),
    Column(figure="changed_per_second", title="changed/s"),
    Column(figure="changed_ratio", title="to bare", format=".2f"),
    Column(figure="changed_extra_writes", title="extra writes"),
    Column(figure="changed_cpu", title="CPU", format=".1f", unit=" s"),
    Column(figure="peak_mb", title="peak memory", unit=" MB"),
]

Act = Callable[[int], Awaitable[object]]


async def measure(run: Run) -> list[Measurement]:
    """The bare client first, then each operator on an API server of its own."""
    objects = run.sizes.reconcile_objects
    rows = []
    if run.wanted(BARE):
        run.say("reconcile: the bare client")
        rows += await _bare(run, objects)
    for subject in filter(lambda one: run.wanted(one.name), OPERATORS):
        run.say(f"reconcile: {subject.name}")

        async def once(subject: Subject = subject) -> dict[str, float]:
            return await _operator(run, subject, objects // (SLOW_SHARE if subject.slow else 1))

        rows.append(await row(subject.name, 1, once))
    found = Measurement(
        name="reconcile",
        title=f"reconcile: {objects:,} objects and their ConfigMaps on a real API server",
        columns=COLUMNS,
        rows=compared(rows),
        notes=[
            f"Objects a second, from the user's first write to the last object settled. "
            f"An object needs 3 writes: 1 by the user, {NEEDED} by the operator.",
            f"kopf had {objects // SLOW_SHARE:,} objects.",
        ],
    )
    return [msgspec.structs.replace(found, verdicts=reconcile_goals(found))]


def compared(rows: list[Row]) -> list[Row]:
    """The rows with their throughput as a share of the bare client's."""
    bare = next((one.figures for one in rows if one.subject == BARE), {})

    def shares(one: Row) -> dict[str, float]:
        found = {
            phase: ratio(one.figures.get(f"{phase}_per_second"), bare.get(f"{phase}_per_second"))
            for phase in ("created", "changed")
        }
        return {f"{phase}_ratio": share for phase, share in found.items() if share is not None}

    return [msgspec.structs.replace(one, figures=one.figures | shares(one)) for one in rows]


async def _bare(run: Run, objects: int) -> list[Row]:
    """What can be reached at all: with merge patches, and with applies."""
    limit = run.sizes.subject_limit
    uids: dict[int, str] = {}
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(cluster(run.directory / "bare"))
        api = server.api
        in_flight = await _best_concurrency(api, min(300, objects))
        run.say(f"reconcile: the bare client is best with {in_flight} in flight")
        observer = await stack.enter_async_context(Observer.watching(api))

        async def create(index: int) -> None:
            uids[index] = await writers.bare_create(api, index)

        async def phase(act: Act, round_: int) -> float:
            observer.expect(objects, round_)
            began = time.monotonic()
            await writers.for_all(range(objects), act, in_flight)
            return objects / (await observer.done(limit) - began)

        created = await phase(create, 0)
        changed = await phase(lambda index: writers.bare_change(api, index, 1), 1)
        applied = await phase(lambda index: writers.bare_apply(api, index, 2, uids[index]), 2)
    return [
        Row(subject=BARE, figures={"created_per_second": created, "changed_per_second": changed}),
        Row(subject=BARE_APPLYING, figures={"changed_per_second": applied}),
    ]


async def _best_concurrency(api: Api, objects: int) -> int:
    """The number of requests in flight with which the bare client is fastest."""
    speeds: dict[int, float] = {}
    first = CANARY + 1  # out of the way of the counted ones
    for in_flight in CONCURRENCIES:
        began = time.monotonic()
        batch = range(first, first + objects)
        await writers.for_all(batch, lambda index: writers.bare_create(api, index), in_flight)
        speeds[in_flight] = objects / (time.monotonic() - began)
        first += objects
    return max(speeds, key=lambda one: speeds[one])


async def _operator(run: Run, subject: Subject, objects: int) -> dict[str, float]:
    directory = run.directory / f"reconcile-{OPERATORS.index(subject)}"
    async with (
        cluster(directory) as server,
        Observer.watching(server.api) as observer,
        run.operator("reconcile", subject, server.kubeconfig) as process,
    ):
        limit = run.sizes.subject_limit
        observer.expect(1, 0)
        await writers.create_widget(server.api, CANARY)
        await observer.done(limit)

        def create(index: int) -> Awaitable[object]:
            return writers.create_widget(server.api, index)

        def change(index: int) -> Awaitable[object]:
            return writers.change_widget(server.api, index, 1)

        created = await _phase(server, process, observer, create, objects, 0, limit)
        changed = await _phase(server, process, observer, change, objects, 1, limit)
        return (
            {f"created_{name}": value for name, value in created.items()}
            | {f"changed_{name}": value for name, value in changed.items()}
            | {"peak_mb": process.peak_memory() / 1e6}
        )


async def _phase(
    server: Cluster,
    process: Process,
    observer: Observer,
    act: Act,
    objects: int,
    round_: int,
    limit: float,
) -> dict[str, float]:
    """One write of the user to each object, until all have settled and all is quiet."""
    requests, cpu = await _quiet(server.api), process.cpu()
    # The canary counts in its own round only.
    observer.expect(objects + (round_ == 0), round_)
    began = time.monotonic()
    await writers.for_all(range(objects), act)
    ended = await observer.done(limit)
    made = writes(await _quiet(server.api) - requests) - objects
    return {
        "per_second": objects / (ended - began),
        "extra_writes": made - NEEDED * objects,
        "cpu": process.cpu() - cpu,
    }


async def _quiet(api: Api) -> Counter[Request]:
    """The counts when there was no write for a second; late and needless ones are in it."""
    counts = counted(await api.text("/metrics"))
    for _ in range(15):
        await asyncio.sleep(1)
        before, counts = counts, counted(await api.text("/metrics"))
        if writes(before) == writes(counts):
            break
    return counts
