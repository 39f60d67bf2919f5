"""One pod's processes, without an API server: what is left of a pod in the agent's memory."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.localcluster.node.processes import sandbox
from tests.integration.pods import needs_bubblewrap
from tests.objects import container, pod

from quarterdeck.kube import Client, Connection
from quarterdeck.localcluster.node.pod.lifecycle import Start
from quarterdeck.localcluster.node.pod.run import PodRun
from quarterdeck.localcluster.node.pod.tokens import Tokens
from quarterdeck.localcluster.node.sandbox.arguments import Sandbox
from quarterdeck.localcluster.node.times import now

pytestmark = needs_bubblewrap

MAIN = container("", readinessProbe={"exec": {"command": ["true"]}})


class Started:
    """A pod whose container was started; `woken` is set whenever it changes by itself."""

    def __init__(self, directory: Path) -> None:
        self.woken = asyncio.Event()
        made = pod("pod", MAIN)
        made["metadata"]["uid"] = "uid"
        self.run = PodRun(
            made,
            directory,
            tokens=Tokens(Client(Connection(server="http://127.0.0.1:1", tls=None)), share=0.8),
            wake=self.woken.set,
            clock=now,
            record=lambda *_: None,
        )

    async def start(self, script: str, restarts: int = 0) -> None:
        how = Start(container="main", restarts=restarts, crashes=0)
        await self.run.start(MAIN, how, self._sandbox(script))

    def _sandbox(self, script: str) -> Sandbox:
        return sandbox(["sh", "-c", script], self.run.directory / "scratch")

    async def until_ended(self) -> None:
        async with asyncio.timeout(30):
            while self.run.running:
                self.woken.clear()
                await self.woken.wait()


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Only what nobody refers to is freed: no search for cycles."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
async def test_nothing_of_a_pod_is_kept_when_it_is_let_go_of(tmp_path: Path) -> None:
    """Cycles would wait for the collector, and thousands of objects with them."""
    started = Started(tmp_path)
    for restarts in range(3):
        await started.start("echo one; exit 1", restarts)
        await started.until_ended()
    gone = asyncio.Event()
    left = weakref.ref(started.run, lambda _: gone.set())
    del started.run
    # The probe's task, which was cancelled, has its last turns; a cycle would stay for ever.
    async with asyncio.timeout(20):
        await gone.wait()
    assert left() is None


async def test_a_process_that_has_ended_is_not_kept_and_can_be_stopped_all_the_same(
    tmp_path: Path,
) -> None:
    """It may have ended between the decision to stop it and the deed."""
    started = Started(tmp_path)
    await started.start("exit 3")
    await started.until_ended()
    assert not started.run._processes
    hook = {**MAIN, "lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}
    started.run.run_pre_stop(hook, 5)
    started.run.terminate("main")
    started.run.kill("main")
    await started.run.end(1)
    ended = started.run.containers["main"].exit
    assert ended is not None
    assert ended.code == 3
