"""`python -m bench.log_level`: from a log level being asked for to the first line at it.

The cluster version operator runs as a process of its own against a cluster of its own. The level
is changed by a PATCH, one at a time, up and down; the operator's first line at the new level has
the time at which it was written. Both are read from the same clock. A PATCH is accepted between
its sending and its answer, so both intervals are shown: the first is longer than what was asked
for, the second shorter.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from bench.arithmetic import median, percentile
from bench.goals import at_most
from bench.report import report
from bench.results import Column, Measurement, Row
from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.operators.cluster_version.log_level.controller import CONFIGS
from quarterdeck.testing.log_level import LogLevelObjects
from quarterdeck.testing.operator_process import OperatorProcess

LEVELS = ("Debug", "Trace", "TraceAll", "Normal")
GOAL = 0.1
SENT, ANSWERED, OBSERVED = "PATCH sent", "PATCH answered", "PATCH sent, to observedGeneration"


def main() -> None:
    """Measure, show and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.log_level", description=__doc__)
    parser.add_argument("--changes", type=int, default=300)
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two changes")
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="bench-log-level-") as directory,
        _operator(Path(directory)) as (plane, operator),
    ):
        times = asyncio.run(_change(plane.kubeconfig, operator, arguments.changes, arguments.pause))
    report("log-level", [_measurement(times)])


@contextmanager
def _operator(directory: Path) -> Iterator[tuple[ControlPlane, OperatorProcess]]:
    """A cluster with the operator's objects, and the operator, which has observed them."""
    binaries = ensure_binaries(BinarySettings.from_environment(os.environ))
    with ControlPlane(directory / "state", binaries) as plane:
        install_own_definitions(plane.requests())
        objects = LogLevelObjects(plane)
        objects.make_gates()
        objects.make_config()
        options = ["--operator=cluster-version", f"--kubeconfig={plane.kubeconfig}"]
        operator = OperatorProcess(options, directory / "operator.log")
        try:
            objects.wait_observed()
            yield plane, operator
        finally:
            operator.kill()


async def _change(
    kubeconfig: Path, operator: OperatorProcess, changes: int, pause: float
) -> dict[str, list[float]]:
    """Seconds from each change to its first line, and until status says so."""
    times: dict[str, list[float]] = {SENT: [], ANSWERED: [], OBSERVED: []}
    with operator.log.open() as log:
        log.seek(0, os.SEEK_END)
        async with Client(load_kubeconfig(str(kubeconfig))) as client:
            for number in range(changes):
                level = LEVELS[number % len(LEVELS)]
                sent = time.time()
                changed = await client.patch(
                    CONFIGS, "cluster", {"spec": {"operatorLogLevel": level}}
                )
                answered = time.time()
                written = await _first_line(log, level)
                times[SENT].append(written - sent)
                times[ANSWERED].append(max(0.0, written - answered))
                await _observed(client, changed["metadata"]["generation"])
                times[OBSERVED].append(time.time() - sent)
                await asyncio.sleep(pause)
    return times


async def _first_line(log: "Iterator[str]", level: str) -> float:
    """When the first line at a level was written, by its own time."""
    text = ""
    while True:
        for piece in log:
            text += piece
            if not text.endswith("\n"):
                continue
            line, text = json.loads(text), ""
            if line["event"] == "first line at this log level" and line["after"] == level:
                return datetime.fromisoformat(line["timestamp"]).timestamp()
        await asyncio.sleep(0.001)


async def _observed(client: Client, generation: int) -> None:
    while True:
        config = await client.get(CONFIGS, "cluster")
        if config.get("status", {}).get("observedGeneration", 0) >= generation:
            return


def _measurement(times: dict[str, list[float]]) -> Measurement:
    columns = [
        Column(figure=name, title=name, format=".1f", scale=1000, unit=" ms")
        for name in ("p50", "p99", "max")
    ]
    rows = [
        Row(
            subject=name,
            figures={"p50": median(each), "p99": percentile(each, 99), "max": max(each)},
        )
        for name, each in times.items()
    ]
    return Measurement(
        name="log-level",
        title=f"from asking for a log level to the first line at it, {len(times[SENT])} changes",
        columns=columns,
        rows=rows,
        verdicts=[at_most("p99, PATCH sent to first line", GOAL, rows[0].figures["p99"], "s")],
    )


if __name__ == "__main__":
    main()
