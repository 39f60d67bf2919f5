"""From a change being accepted to its effect being seen, one change at a time.

The clock starts when the server has answered the user's change of a Widget, and stops when an
observer's watch brings the ConfigMap with it. Idle first; then with a background of changes to
other Widgets, which the operator has to look at but which ask nothing of it: with effects, the
API server of a small machine would be past its limit before the operator is.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from bench import widgets, writers
from bench.arithmetic import median, percentile
from bench.cluster import Cluster, cluster
from bench.goals import REFERENCE, latency_goals
from bench.measure.run import Run
from bench.observer import Observer
from bench.processes import SubjectFailed, SubjectMissing, running
from bench.results import Column, Measurement, Row
from bench.subjects.catalogue import AS_WE_DO, OPERATORS, Subject

PAUSE = 0.02
"""Seconds between one effect and the next change."""
EFFECT_LIMIT = 20.0
"""Seconds after which a change counts as lost."""
SUBJECTS = (*(one for one in OPERATORS if one.name != REFERENCE), AS_WE_DO)

COLUMNS = [
    Column(figure="idle_p50", title="idle p50", format=".1f", scale=1e3, unit=" ms"),
    Column(figure="idle_p99", title="p99", format=".1f", scale=1e3, unit=" ms"),
    Column(figure="idle_samples", title="samples"),
    Column(figure="busy_p50", title="busy p50", format=".1f", scale=1e3, unit=" ms"),
    Column(figure="busy_p99", title="p99", format=".1f", scale=1e3, unit=" ms"),
    Column(figure="busy_samples", title="samples"),
    Column(figure="background", title="background", unit="/s"),
    Column(figure="write_p50", title="one write p50", format=".1f", scale=1e3, unit=" ms"),
]


class Samples(msgspec.Struct, frozen=True, kw_only=True):
    """What was taken from one operator in one round, in seconds."""

    idle: list[float]
    busy: list[float]
    answers: list[float]
    """From the user's request to its answer."""
    background: float
    """Changes a second that were made beside it."""


async def measure(run: Run) -> list[Measurement]:
    """Rounds in which each operator has its turn, on an API server of its own."""
    sizes = run.sizes
    subjects = [one for one in SUBJECTS if run.wanted(one.name)]
    taken: dict[str, list[Samples]] = {one.name: [] for one in subjects}
    problems: dict[str, Row] = {}
    for round_ in range(sizes.latency_rounds):
        for number, subject in enumerate(subjects):
            if subject.name in problems or (subject.slow and round_):
                continue
            run.say(f"latency: {subject.name}")
            try:
                async with cluster(run.directory / f"latency-{number}-{round_}") as server:
                    taken[subject.name].append(await _operator(run, server, subject))
            except (SubjectMissing, SubjectFailed) as error:
                missing = isinstance(error, SubjectMissing)
                problems[subject.name] = Row(
                    subject=subject.name, problem=str(error), missing=missing
                )
    rows = [
        problems.get(name) or Row(subject=name, figures=figures(samples))
        for name, samples in taken.items()
    ]
    found = Measurement(
        name="latency",
        title="latency: change accepted → ConfigMap seen",
        columns=COLUMNS,
        rows=rows,
        notes=[
            f"Busy: with {sizes.background_rate} changes a second to other objects asked for, "
            "which have no effect on their ConfigMaps; the rate that was reached is in the table.",
            "One write: the user's own change while idle, from request to answer.",
        ],
    )
    return [msgspec.structs.replace(found, verdicts=latency_goals(found))]


async def _operator(run: Run, server: Cluster, subject: Subject) -> Samples:
    objects, samples = run.sizes.latency_objects, run.sizes.latency_samples
    async with (
        Observer.watching(server.api) as observer,
        run.operator("latency", subject, server.kubeconfig),
    ):
        observer.expect(objects, 0)
        await writers.for_all(range(objects), lambda one: writers.create_widget(server.api, one))
        await observer.done(run.sizes.subject_limit)
        await asyncio.sleep(1)
        # The first half is for samples, the second for the background.
        sampled = range(objects // 2)
        idle, answers = await sample(server, observer, sampled, samples, 0, math.inf)
        async with _background(run, server, objects) as reached:
            busy, _ = await sample(
                server, observer, sampled, samples, samples, run.sizes.busy_seconds
            )
        return Samples(idle=idle, busy=busy, answers=answers, background=reached[0])


def figures(rounds: list[Samples]) -> dict[str, float]:
    """The percentiles over the samples of all rounds."""
    idle = [one for taken in rounds for one in taken.idle]
    busy = [one for taken in rounds for one in taken.busy]
    answers = [one for taken in rounds for one in taken.answers]
    return {
        "idle_p50": percentile(idle, 50),
        "idle_p99": percentile(idle, 99),
        "idle_samples": len(idle),
        "busy_p50": percentile(busy, 50),
        "busy_p99": percentile(busy, 99),
        "busy_samples": len(busy),
        "background": median([taken.background for taken in rounds]),
        "write_p50": percentile(answers, 50),
    }


async def sample(
    server: Cluster, observer: Observer, indexes: range, samples: int, rounds: int, within: float
) -> tuple[list[float], list[float]]:
    """Seconds from answer to effect, and from request to answer, of so many changes at most."""
    effects, answers = [], []
    end = time.monotonic() + within
    for number in range(samples):
        if time.monotonic() > end:
            break
        index, round_ = indexes[number % len(indexes)], rounds + number + 1
        seen = observer.config_map_at(widgets.name_of(index), round_)
        began = time.monotonic()
        await writers.change_widget(server.api, index, round_)
        accepted = time.monotonic()
        try:
            async with asyncio.timeout(EFFECT_LIMIT):
                effects.append(await seen - accepted)
        except TimeoutError:
            raise SubjectFailed(f"a change had no effect within {EFFECT_LIMIT:g} s") from None
        answers.append(accepted - began)
        await asyncio.sleep(PAUSE)
    return effects, answers


@asynccontextmanager
async def _background(run: Run, server: Cluster, objects: int) -> AsyncIterator[list[float]]:
    """Changes to the second half of the objects; after the block, how many a second it were."""
    flags = {
        "--url": server.address.url,
        "--authority": str(server.address.authority),
        "--certificate": str(server.address.certificate),
        "--key": str(server.address.key),
        "--first": str(objects // 2),
        "--last": str(objects),
        "--rate": str(run.sizes.background_rate),
    }
    command = [str(run.tools.ours), "-m", "bench.background"]
    command += [part for flag in flags.items() for part in flag]
    reached: list[float] = []
    async with running("background", command, run.log("latency", "background")) as process:
        first = await process.mark("running", 20)
        yield reached
        await process.say("enough")
        last = await process.mark("stopped", 20)
        reached.append((last.seen - first.seen) / (last.at - first.at))
