"""Child processes that are measured: started, listened to, bounded in time, and ended by us.

A child speaks in lines of JSON, its marks. What it costs is read from /proc while it lives.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import msgspec

REPOSITORY = Path(__file__).resolve().parent.parent
_TICKS = os.sysconf("SC_CLK_TCK")


class Mark(msgspec.Struct, frozen=True):
    """Something that a subject reached."""

    mark: str
    at: float
    """Seconds since the epoch, by the clock that all processes here share."""
    cpu: float
    """Seconds of CPU until then."""
    seen: int = 0


class SubjectFailed(Exception):  # noqa: N818 - it says what happened
    """A subject crashed or hung; the text goes into its row."""


class SubjectMissing(SubjectFailed):
    """A subject cannot be had on this machine."""


class Process:
    """A running child."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self._process = process
        self._log = log

    @classmethod
    async def start(
        cls, name: str, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None
    ) -> Self:
        """Start a child; what it says on standard error goes to the log."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=REPOSITORY,
                env=dict(os.environ) | dict(env or {}),
                limit=1 << 20,
            )
        return cls(name, process, log)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def mark(self, name: str, limit: float) -> Mark:
        """The next mark of this name."""
        try:
            async with asyncio.timeout(limit):
                return await self._next(name)
        except TimeoutError:
            raise SubjectFailed(f"no '{name}' within {limit:g} s{self._last_words()}") from None

    async def say(self, line: str) -> None:
        """Write a line to the child's standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()

    def cpu(self) -> float:
        """Seconds of CPU that the child has used."""
        fields = self._proc("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def peak_memory(self) -> int:
        """The most bytes of memory that the child ever held."""
        return self._status("VmHWM")

    def memory(self) -> int:
        """The bytes of memory that the child holds now."""
        return self._status("VmRSS")

    async def stop(self) -> None:
        """End the child: by the end of its input, else by signals."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        for act in (None, self._process.terminate, self._process.kill):
            if act is not None:
                with contextlib.suppress(ProcessLookupError):
                    act()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(4):
                    await self._process.wait()
                    return

    async def _next(self, name: str) -> Mark:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            with contextlib.suppress(msgspec.DecodeError):
                if (mark := msgspec.json.decode(line, type=Mark)).mark == name:
                    return mark
        code = await self._process.wait()
        raise SubjectFailed(f"ended with {code} before '{name}'{self._last_words()}")

    def _last_words(self) -> str:
        lines = [line for line in self._log.read_text(errors="replace").splitlines() if line]
        return f": {lines[-1][:160]}" if lines else ""

    def _proc(self, file: str) -> str:
        try:
            return Path(f"/proc/{self.pid}/{file}").read_text()
        except (FileNotFoundError, ProcessLookupError):
            raise SubjectFailed(f"is gone{self._last_words()}") from None

    def _status(self, field: str) -> int:
        for line in self._proc("status").splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
        raise SubjectFailed(f"is gone{self._last_words()}")


@contextlib.asynccontextmanager
async def running(
    name: str, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None
) -> AsyncIterator[Process]:
    """A child that has ended when the block has."""
    process = await Process.start(name, command, log, env)
    try:
        yield process
    finally:
        await process.stop()
