"""A process of operators in the test's own loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from quarterdeck.controller import Manager, Operator, Process, ProcessSettings, Timing
from quarterdeck.kube import load_kubeconfig

LIMIT = 60.0


def operator(name: str, setup: Callable[[Manager], None], namespace: str = "default") -> Operator:
    return Operator(
        name=name,
        setup=setup,
        field_manager=f"test-{name}",
        lease_namespace=namespace,
        lease_name=name,
    )


def make_process(
    kubeconfig: Path, operators: list[Operator], namespace: str, election: Timing | None = None
) -> Process:
    settings = ProcessSettings(
        identity="test",
        namespaces=(namespace,),
        election=election,
        probe_address="127.0.0.1:0",
        drain=10,
    )
    return Process(operators, load_kubeconfig(kubeconfig), settings)


@asynccontextmanager
async def running(process: Process) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(process.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def when(condition: Callable[[], bool], task: "asyncio.Task[None]") -> None:
    """Return when the condition holds; fail with the process if that ends first."""
    async with asyncio.timeout(LIMIT):
        while not condition():
            if task.done():
                await task
            await asyncio.sleep(0.02)
