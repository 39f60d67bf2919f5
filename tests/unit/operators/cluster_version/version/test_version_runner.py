"""The runner of a payload, whose engine may end without being asked to."""

import asyncio
from collections.abc import Callable

import pytest

from quarterdeck.controller import TaskEnded
from quarterdeck.operators.cluster_version.sync import PayloadProgress
from quarterdeck.operators.cluster_version.version.runner import Runner
from quarterdeck.operators.cluster_version.version.work import Work
from quarterdeck.payload.graph import Mode

LIMIT = 30.0
WORK = Work(version="1.0.0", version_hash="x", mode=Mode.RECONCILING, manifests=())


class Leaking:
    """An engine in which a future is cancelled that somebody else had an eye on."""

    async def run(self, work: Work, report: Callable[[PayloadProgress], None]) -> PayloadProgress:
        raise NotImplementedError

    async def keep(self, work: Work, report: Callable[[PayloadProgress], None]) -> None:
        lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lost.cancel()
        await lost


async def test_a_cancellation_from_inside_the_engine_is_raised() -> None:
    runner = Runner(wake=lambda: None)
    runner.want(WORK)
    async with asyncio.timeout(LIMIT):
        with pytest.raises(TaskEnded, match="work was cancelled from inside"):
            await runner.run(Leaking())


async def test_a_runner_that_is_stopped_stops() -> None:
    runner = Runner(wake=lambda: None)
    task = asyncio.create_task(runner.run(Leaking()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
