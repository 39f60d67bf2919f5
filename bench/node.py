"""`python -m bench.node`: the node `this-machine`, on a cluster of its own.

How long from a pod's binding to its process, one at a time and many at once; what the agent
costs when nothing happens; how soon the other replica leads when the leader's pod is deleted.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.arithmetic import percentile
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.localcluster.operators import deploy_operator

NAMESPACE = "quarterdeck-sample"
PODS = "/api/v1/namespaces/default/pods"
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure and show."""
    parser = argparse.ArgumentParser(prog="python -m bench.node", description=__doc__)
    parser.add_argument("--pods", type=int, default=50)
    parser.add_argument("--idle-seconds", type=float, default=30)
    arguments = parser.parse_args()
    table = Table("figure", "value")
    with tempfile.TemporaryDirectory(prefix="bench-node-") as directory, _plane(directory) as plane:
        began = time.monotonic()
        plane.start("this-machine")
        table.add_row("agent started to node ready", f"{time.monotonic() - began:.2f} s")
        half = arguments.pods // 2
        _row(
            table, "bound to running, one at a time", [_one(plane, f"one-{n}") for n in range(half)]
        )
        _row(table, f"bound to running, {half} at once", _many(plane, half))
        for figure, value in _idle(plane, arguments.idle_seconds).items():
            table.add_row(f"{figure}, {2 * half} pods that do nothing", value)
        plane.kubectl("delete", "pods", "--all", "--wait=false")
        _row(table, "leader's pod deleted to other leads", [_takeover(plane) for _ in range(3)])
    Console().print(table)


@contextmanager
def _plane(directory: str) -> Iterator[ControlPlane]:
    binaries = ensure_binaries(BinarySettings.from_environment(os.environ))
    with ControlPlane(Path(directory) / "state", binaries, durable=False) as plane:
        plane.add_this_machine()
        yield plane


def _one(plane: ControlPlane, name: str) -> float:
    bound = create_bound(plane, name)
    return when_started(plane, name) - bound


def _many(plane: ControlPlane, count: int) -> list[float]:
    bound = {f"many-{number}": create_bound(plane, f"many-{number}") for number in range(count)}
    return [when_started(plane, name) - moment for name, moment in bound.items()]


def create_bound(plane: ControlPlane, name: str) -> float:
    """Create a pod that is bound already and writes down when it runs; the time of its binding."""
    script = "date +%s.%N; exec sleep 10000"
    container = {"name": "main", "image": "quarterdeck", "command": ["sh", "-c", script]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": "this-machine",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }
    bound = time.time()
    answer = plane.requests().send("POST", PODS, json.dumps(pod).encode())
    assert answer.ok, answer.body
    return bound


def when_started(plane: ControlPlane, name: str) -> float:
    """What the pod wrote down; asked seldom, so that asking is not measured."""
    while True:
        log = plane.kubectl("logs", name, check=False).stdout.split()
        if log:
            return float(log[0])
        time.sleep(0.5)


def _idle(plane: ControlPlane, seconds: float) -> dict[str, str]:
    pid = plane.processes["this-machine"].pid
    assert pid is not None
    time.sleep(3)
    before = cpu_seconds(pid)
    time.sleep(seconds)
    share = (cpu_seconds(pid) - before) / seconds
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    (memory,) = [int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS")]
    return {"CPU": f"{share:.2%} of a core", "memory": f"{memory:.0f} MB"}


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _takeover(plane: ControlPlane) -> float:
    """Seconds from the deletion of the leader's pod until another one holds the Lease."""
    install_own_definitions(plane.requests())
    deploy_operator(plane, "sample")
    while not (old := _leader(plane)):
        time.sleep(0.05)
    plane.kubectl("delete", "pod", old, f"--namespace={NAMESPACE}", "--wait=false")
    began = time.monotonic()
    while _leader(plane) in ("", old):
        time.sleep(0.02)
    return time.monotonic() - began


def _leader(plane: ControlPlane) -> str:
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/sample-operator"
    answer = plane.requests().send("GET", lease)
    holder = answer.json()["spec"].get("holderIdentity") or "" if answer.ok else ""
    return str(holder).partition("_")[0]


def _row(table: Table, figure: str, seconds: list[float]) -> None:
    table.add_row(
        figure,
        f"p50 {percentile(seconds, 50):.3f} s, p99 {percentile(seconds, 99):.3f} s "
        f"({len(seconds)} times)",
    )


if __name__ == "__main__":
    main()
