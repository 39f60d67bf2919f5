"""Containers' processes as tests make them: a shell script in bubblewrap, and what it wrote."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.integration.pods import NAMESPACES

from quarterdeck.localcluster.node.logs.query import LogQuery
from quarterdeck.localcluster.node.logs.reader import read
from quarterdeck.localcluster.node.logs.writer import LogWriter
from quarterdeck.localcluster.node.sandbox.arguments import Sandbox, User
from quarterdeck.localcluster.node.sandbox.host import RealHost
from quarterdeck.localcluster.node.sandbox.isolation import NEEDED_IN_PROOT
from quarterdeck.localcluster.node.sandbox.mounts import View, plan_mounts
from quarterdeck.localcluster.node.sandbox.process import ContainerProcess, Ended
from quarterdeck.localcluster.node.sandbox.proot_view import proot_view
from quarterdeck.localcluster.node.times import parse_time

ROOT = os.geteuid() == 0 and NAMESPACES
"""Whether processes can have other users."""
NOW = parse_time("2026-03-01T12:00:00Z")

Make = Callable[..., ContainerProcess]


def sandbox(
    command: Sequence[str],
    scratch: Path,
    *,
    user: User | None = None,
    variables: dict[str, str] | None = None,
    **view: object,
) -> Sandbox:
    """What a command is started with, the way that pods run here."""
    if not NAMESPACES:
        view["kept"] = NEEDED_IN_PROOT
    host = RealHost()
    mounts = plan_mounts(View(**view), host, open_root=not NAMESPACES)  # type: ignore[arg-type]
    return Sandbox(
        command=command,
        hostname="pod-1",
        variables={"PATH": os.environ["PATH"], **(variables or {})},
        mounts=mounts,
        root=ROOT,
        user=user,
        proot=None if NAMESPACES else proot_view(mounts, str(scratch), host),
    )


def maker(directory: Path) -> Make:
    """Makes processes of shell scripts, or of commands, whose logs go to the directory."""
    count = 0

    def process(
        script: str | Sequence[str],
        *,
        user: User | None = None,
        variables: dict[str, str] | None = None,
        **view: object,
    ) -> ContainerProcess:
        nonlocal count
        count += 1
        made = sandbox(
            ["sh", "-c", script] if isinstance(script, str) else script,
            directory / f"{count}.scratch",
            user=user,
            variables={"SECRET": "s3cret", **(variables or {})},
            **view,
        )
        return ContainerProcess(made, LogWriter(directory / f"{count}.log"))

    return process


async def run(process: ContainerProcess) -> tuple[Ended, str]:
    """How a process ends, and all that it writes."""
    await process.start()
    ended = await asyncio.wait_for(process.ended, 30)
    return ended, await written(process)


async def written(process: ContainerProcess) -> str:
    """What a process has written so far."""
    path = process._log.path
    return b"".join([chunk async for chunk in read(path, LogQuery(), NOW, None)]).decode()


async def until_written(process: ContainerProcess, text: str) -> None:
    """Wait until a process has written the text."""
    async with asyncio.timeout(30):
        while True:
            change = process._log.change
            if text in await written(process):
                return
            await change.wait()


def processes() -> list[str]:
    """The numbers of all processes."""
    return [path.name for path in Path("/proc").iterdir() if path.name.isdecimal()]


def command_line(pid: str) -> bytes:
    """The command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
