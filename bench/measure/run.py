"""What the measurements share: where a run keeps its files, and how a subject's failure ends."""

import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec

from bench.arithmetic import median
from bench.processes import Process, SubjectFailed, SubjectMissing, running
from bench.results import Row
from bench.settings import Sizes
from bench.subjects.catalogue import Subject
from bench.tools import Tools


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the benchmark."""

    sizes: Sizes
    tools: Tools
    directory: Path
    """For files that are gone after the run."""
    logs: Path
    """For what the subjects say on standard error."""
    only: list[str] = []
    """The names of the subjects to measure; all if empty."""

    def wanted(self, subject: str) -> bool:
        """Whether this subject is to be measured."""
        return not self.only or subject in self.only

    def say(self, text: str) -> None:
        """Tell whoever waits what is going on."""
        print(text, file=sys.stderr, flush=True)

    def log(self, measurement: str, subject: str) -> Path:
        """Where a subject's standard error goes."""
        name = "".join(char if char.isalnum() else "-" for char in subject)
        return self.logs / f"{measurement}-{name}.log"

    @contextlib.asynccontextmanager
    async def operator(
        self, measurement: str, subject: Subject, kubeconfig: Path
    ) -> AsyncIterator[Process]:
        """A running operator; raises SubjectFailed where it cannot be started at all."""
        command = subject.start_with(self.tools)
        if isinstance(command, str):
            raise SubjectMissing(command)
        full = [*command, "--kubeconfig", str(kubeconfig)]
        log = self.log(measurement, subject.name)
        async with running(subject.name, full, log, {"KUBECONFIG": str(kubeconfig)}) as process:
            yield process


async def row(subject: str, repeats: int, once: Callable[[], Awaitable[dict[str, float]]]) -> Row:
    """The median figures of a subject; what failed stands in the row, and the others go on."""
    found: list[dict[str, float]] = []
    problem = ""
    for _ in range(repeats):
        try:
            found.append(await once())
        except SubjectMissing as missing:
            return Row(subject=subject, problem=str(missing), missing=True)
        except SubjectFailed as failed:
            problem = str(failed)
            break
    return Row(subject=subject, figures=medians(found), problem=problem)


def medians(found: list[dict[str, float]]) -> dict[str, float]:
    """For each figure, the median over the runs."""
    names = dict.fromkeys(name for one in found for name in one)
    return {name: median([one[name] for one in found if name in one]) for name in names}
