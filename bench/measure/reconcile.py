"""Objects that are new, then changed, on a real API server: how fast an operator is.

A user creates Widgets, and then the operator is started and has all of them to bring into order.
It is stopped, the user changes one field in all of them, and it is started again. The clock runs
from the first effect that an observer sees to the last, so that neither the user's writes nor the
operator's start are in it. The bare client makes the same writes with nothing to find out.
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
from bench.cluster import cluster
from bench.goals import BARE, BARE_APPLYING, reconcile_goals
from bench.measure.run import Run, row
from bench.observer import Observer
from bench.requests import Request, counted, writes
from bench.results import Column, Measurement, Row
from bench.subjects.catalogue import OPERATORS, Subject

NEEDED = 2
"""Writes that an operator needs for an object that is new or changed: ConfigMap and status."""

CONCURRENCIES = (16, 32, 64)
BESIDE = 100_000
"""The first index of objects that are out of the way of the counted ones."""
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
            f"Objects a second, from the first effect seen to the last object settled. "
            f"An object needs {NEEDED} writes: its ConfigMap and its status. CPU: start included.",
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
        observer = await stack.enter_async_context(Observer.watching(api))

        async def create(index: int) -> None:
            uids[index] = await writers.create_widget(api, index)

        async def phase(users: Act, act: Act, round_: int) -> float:
            observer.expect(objects, round_)
            await writers.for_all(range(objects), users)
            await writers.for_all(range(objects), act, in_flight)
            return await _speed(observer, objects, limit)

        in_flight = await _best_concurrency(api, min(300, objects))
        run.say(f"reconcile: the bare client is best with {in_flight} in flight")
        created = await phase(create, lambda one: writers.bare_create(api, one, uids[one]), 0)
        changed = await phase(
            lambda one: writers.change_widget(api, one, 1),
            lambda one: writers.bare_change(api, one, 1),
            1,
        )
        applied = await phase(
            lambda one: writers.change_widget(api, one, 2),
            lambda one: writers.bare_apply(api, one, 2, uids[one]),
            2,
        )
    return [
        Row(subject=BARE, figures={"created_per_second": created, "changed_per_second": changed}),
        Row(subject=BARE_APPLYING, figures={"changed_per_second": applied}),
    ]


async def _best_concurrency(api: Api, objects: int) -> int:
    """The number of requests in flight with which the bare client is fastest."""
    speeds: dict[int, float] = {}
    first = BESIDE
    for in_flight in CONCURRENCIES:
        began = time.monotonic()
        batch = range(first, first + objects)
        await writers.for_all(batch, lambda one: writers.create_widget(api, one), in_flight)
        speeds[in_flight] = objects / (time.monotonic() - began)
        first += objects
    return max(speeds, key=lambda one: speeds[one])


async def _operator(run: Run, subject: Subject, objects: int) -> dict[str, float]:
    directory = run.directory / f"reconcile-{OPERATORS.index(subject)}"
    async with cluster(directory) as server, Observer.watching(server.api) as observer:

        async def phase(users: Act, round_: int) -> dict[str, float]:
            observer.expect(objects, round_)
            await writers.for_all(range(objects), users)
            before = await _quiet(server.api)
            async with run.operator("reconcile", subject, server.kubeconfig) as process:
                speed = await _speed(observer, objects, run.sizes.subject_limit)
                made = writes(await _quiet(server.api) - before)
                return {
                    "per_second": speed,
                    "extra_writes": made - NEEDED * objects,
                    "cpu": process.cpu(),
                    "peak_mb": process.peak_memory() / 1e6,
                }

        created = await phase(lambda one: writers.create_widget(server.api, one), 0)
        changed = await phase(lambda one: writers.change_widget(server.api, one, 1), 1)
    return (
        {f"created_{name}": value for name, value in created.items()}
        | {f"changed_{name}": value for name, value in changed.items()}
        | {"peak_mb": max(created["peak_mb"], changed["peak_mb"])}
    )


async def _speed(observer: Observer, objects: int, limit: float) -> float:
    """Objects a second, when all have settled."""
    ended = await observer.done(limit)
    return objects / (ended - observer.first_at)


async def _quiet(api: Api) -> Counter[Request]:
    """The counts when there was no write for a second; late and needless ones are in it."""
    counts = counted(await api.text("/metrics"))
    for _ in range(15):
        await asyncio.sleep(1)
        before, counts = counts, counted(await api.text("/metrics"))
        if writes(before) == writes(counts):
            break
    return counts
