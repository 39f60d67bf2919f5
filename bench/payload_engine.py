"""`python -m bench.payload_engine`: 900 manifests on a real API server: applied, settled, updated.

First apply: how long until all objects are there, as a ratio to a bare client that only writes the
same objects, as many at a time. Settled: what a pass costs in requests, CPU and memory, and how
soon an object that somebody deletes is back. Update: a tenth of the manifests is changed; how long
until those are written and no others, beside a bare client that writes just those. Each run has a
process and an API server of its own; no controllers run, so what they would report is reported
here. The median of the runs counts.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from bench import payload_update
from bench.arithmetic import percentile
from bench.goals import BARE, OURS, at_least, at_most
from bench.payload import MANIFESTS, generate
from bench.payload_cluster import (
    make_ready,
    peak_megabytes,
    read_manifests,
    requests_made,
    when_there,
)
from bench.report import report
from bench.results import Column, Measurement, Row
from quarterdeck.api.meta import Key, foreign
from quarterdeck.kube import Client, RequestMetrics, load_kubeconfig
from quarterdeck.kube.kinds import GroupVersionKind, discover
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.log import configure
from quarterdeck.operators.cluster_version.sync import (
    Cluster,
    PayloadProgress,
    keep_payload,
    run_payload,
)
from quarterdeck.operators.cluster_version.sync.desired import desired_object
from quarterdeck.operators.cluster_version.sync.run import WORKERS
from quarterdeck.payload.graph import Mode, build_graph
from quarterdeck.payload.model import Manifest

ROLES = foreign("rbac.authorization.k8s.io/v1", "Role", "roles", namespaced=True)
PASSES = 20
DELETIONS = 50


def main() -> None:
    """Measure, show and write."""
    parser = argparse.ArgumentParser(prog="python -m bench.payload_engine", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=PARTS, help="one part; all if not given")
    parser.add_argument("--subject", choices=SUBJECTS, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kubeconfig", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.subject:
        configure(fmt="json")  # as an operator in a cluster
        subject = PARTS[arguments.only][arguments.subject]
        manifests = read_manifests(arguments.directory)
        print(json.dumps(asyncio.run(subject(arguments.kubeconfig, manifests))))
        return
    with tempfile.TemporaryDirectory(prefix="bench-payload-engine-") as directory:
        (payload := Path(directory) / "payload").mkdir()
        generate(payload)
        found: list[Measurement] = []
        for part in [arguments.only] if arguments.only else PARTS:
            runs = _runs(part, payload, Path(directory), arguments.repeats)
            if part == "apply":
                found += [_first(runs), _settled(runs[OURS])]
            else:
                medians = {name: _median(ones) for name, ones in runs.items()}
                found.append(payload_update.measurement(medians, arguments.repeats))
    report("payload-engine", found)


def _runs(
    part: str, payload: Path, directory: Path, repeats: int
) -> dict[str, list[dict[str, float]]]:
    """The figures of every run of each subject; the subjects take turns."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in PARTS[part]}
    for number in range(repeats):
        for name in runs:
            state = directory / f"{part}-{name}-{number}"
            runs[name].append(_in_a_process(part, name, payload, state))
    return runs


def _in_a_process(part: str, subject: str, payload: Path, state: Path) -> dict[str, float]:
    binaries = ensure_binaries(BinarySettings.from_environment(os.environ))
    plane = ControlPlane(state, binaries, durable=False)
    try:
        plane.start("etcd", "kube-apiserver")
        install_own_definitions(plane.requests())
        command = [sys.executable, "-m", "bench.payload_engine"]
        command += ["--only", part, "--subject", subject]
        where = ["--directory", str(payload), "--kubeconfig", str(plane.kubeconfig)]
        with (state / "subject.log").open("w") as log:
            done = subprocess.run([*command, *where], stdout=subprocess.PIPE, stderr=log)
        if done.returncode:
            raise RuntimeError(f"{subject} failed:\n{(state / 'subject.log').read_text()[-3000:]}")
        figures: dict[str, float] = json.loads(done.stdout)
        return figures
    finally:
        plane.close()


async def bare(kubeconfig: Path, manifests: Sequence[Manifest]) -> dict[str, float]:
    """Only the writes, in the engine's order and as many at a time.

    The order matters: definitions keep the server busy for seconds after they are written, and
    whoever writes them last is done before that.
    """
    nodes = iter(build_graph(manifests, Mode.INITIALIZING).nodes)
    async with Client(load_kubeconfig(kubeconfig)) as client:
        kinds = await discover(client)

        async def work() -> None:
            for node in nodes:
                for manifest in node.manifests:
                    kind = kinds[GroupVersionKind.of(manifest.object)]
                    wanted = desired_object(manifest, namespaced=kind.namespaced)
                    await client.create(kind, wanted, field_manager="bare")

        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(work() for _ in range(WORKERS[Mode.INITIALIZING])))
        return {
            "seconds": time.perf_counter() - began,
            "cpu_seconds": time.process_time() - cpu,
            "writes": float(len(manifests)),
            "megabytes": peak_megabytes(),
        }


async def engine(kubeconfig: Path, manifests: Sequence[Manifest]) -> dict[str, float]:
    """The first apply, then passes, then deletions that have to be mended."""
    registry = CollectorRegistry()
    metrics = RequestMetrics(registry)
    settings = load_kubeconfig(kubeconfig)
    figures: dict[str, float] = {}
    async with Client(settings, metrics=metrics) as client, Cluster(client) as cluster:
        began, cpu = time.perf_counter(), time.process_time()
        written = asyncio.Event()

        def report(progress: PayloadProgress) -> None:
            tried = progress.done + len(progress.waiting) + len(progress.faults)
            lacking = {fault.reason for fault in progress.waiting} & {"NamespaceNotFound"}
            if tried == progress.total and not lacking and not written.is_set():
                figures["seconds"] = time.perf_counter() - began
                figures["cpu_seconds"] = time.process_time() - cpu
                figures["writes"] = requests_made(registry, writes=True)
                written.set()

        run = asyncio.create_task(run_payload(manifests, Mode.INITIALIZING, cluster, report))
        await written.wait()
        async with Client(load_kubeconfig(kubeconfig)) as others:
            await make_ready(others, manifests)
            await run
            figures |= await _passes(manifests, cluster, registry)
            figures |= await _deletions(manifests, cluster, others)
    figures["megabytes"] = peak_megabytes()
    return figures


async def _passes(
    manifests: Sequence[Manifest], cluster: Cluster, registry: CollectorRegistry
) -> dict[str, float]:
    async def one_pass() -> None:
        progress = await run_payload(manifests, Mode.RECONCILING, cluster, lambda _: None)
        assert progress.completed

    cpu = time.process_time()
    await one_pass()
    first = time.process_time() - cpu
    asked = requests_made(registry)
    for _ in range(PASSES):
        await one_pass()
    figures = {"pass_requests": requests_made(registry) - asked, "compare_cpu_seconds": first}
    return figures | await _kept_pass(manifests, cluster)


async def _kept_pass(manifests: Sequence[Manifest], cluster: Cluster) -> dict[str, float]:
    """The CPU of a pass in a process that keeps the payload, against reading its objects."""
    done = asyncio.Event()

    def report(progress: PayloadProgress) -> None:
        if progress.completed:
            done.set()

    often = (0.2, 0.2)
    keeping = asyncio.create_task(keep_payload(manifests, cluster, report, pass_after=often))
    await done.wait()
    await asyncio.sleep(0.1)
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.sleep(4)
    passes = (time.perf_counter() - began) / often[0]
    spent = (time.process_time() - cpu) / passes
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    cpu = time.process_time()
    for _ in range(100):
        for manifest in manifests:
            followed = cluster.followed(manifest)
            assert followed is not None
            followed.cache.get(Key(manifest.identity.namespace, manifest.identity.name))
    return {"kept_pass_cpu_seconds": spent, "read_cpu_seconds": (time.process_time() - cpu) / 100}


async def _deletions(
    manifests: Sequence[Manifest], cluster: Cluster, others: Client
) -> dict[str, float]:
    """From the answer to a delete until the object is there again."""
    settled = asyncio.Event()

    def report(progress: PayloadProgress) -> None:
        if progress.completed:
            settled.set()

    keeping = asyncio.create_task(keep_payload(manifests, cluster, report))
    await settled.wait()
    took = []
    roles = [m.identity for m in manifests if m.identity.kind == "Role"][:DELETIONS]
    for role in roles:
        await others.delete(ROLES, role.name, role.namespace)
        began = time.perf_counter()
        await when_there(lambda: others.get(ROLES, role.name, role.namespace), 0.001)  # noqa: B023
        took.append(time.perf_counter() - began)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    return {"back_p50": percentile(took, 50), "back_p99": percentile(took, 99)}


Subject = Callable[[Path, Sequence[Manifest]], Coroutine[Any, Any, dict[str, float]]]
SUBJECTS: dict[str, Subject] = {
    OURS: engine,
    BARE: bare,
}
UPDATES: dict[str, Subject] = {
    OURS: payload_update.engine,
    BARE: payload_update.bare,
}
PARTS = {"apply": SUBJECTS, "update": UPDATES}


def _median(runs: list[dict[str, float]]) -> dict[str, float]:
    return {figure: statistics.median(run[figure] for run in runs) for figure in runs[0]}


def _first(runs: dict[str, list[dict[str, float]]]) -> Measurement:
    rows = [Row(subject=name, figures=_median(found)) for name, found in runs.items()]
    ours, theirs = (row.figures for row in rows)
    ratio = theirs["seconds"] / ours["seconds"]
    return Measurement(
        name="payload-first-apply",
        title=f"{MANIFESTS} manifests applied to an empty cluster, median of {len(runs[OURS])}",
        columns=[
            Column(figure="seconds", title="time", format=",.2f", unit=" s"),
            Column(figure="cpu_seconds", title="CPU", format=",.2f", unit=" s"),
            Column(figure="writes", title="writes"),
            Column(figure="megabytes", title="peak", unit=" MB"),
        ],
        rows=rows,
        verdicts=[
            at_least("speed, to the bare client", 0.9, ratio),
            at_most("writes", MANIFESTS, ours["writes"], "writes"),
        ],
    )


def _settled(runs: list[dict[str, float]]) -> Measurement:
    figures = _median(runs)
    return Measurement(
        name="payload-settled",
        title=f"{MANIFESTS} manifests, settled",
        columns=[
            Column(figure="pass_requests", title=f"requests, {PASSES} passes"),
            Column(figure="compare_cpu_seconds", title="first pass", scale=1000, unit=" ms CPU"),
            Column(
                figure="kept_pass_cpu_seconds",
                title="later pass",
                format=",.1f",
                scale=1000,
                unit=" ms CPU",
            ),
            Column(
                figure="read_cpu_seconds",
                title="reading the cache",
                format=",.1f",
                scale=1000,
                unit=" ms CPU",
            ),
            Column(figure="back_p50", title="deleted, back p50", scale=1000, unit=" ms"),
            Column(figure="back_p99", title="p99", scale=1000, unit=" ms"),
        ],
        rows=[Row(subject=OURS, figures=figures)],
        verdicts=[
            at_most("requests of a pass", 0, figures["pass_requests"], "requests"),
            at_most(
                "CPU of a later pass, to reading the cache",
                1.0,
                figures["kept_pass_cpu_seconds"] / figures["read_cpu_seconds"],
            ),
        ],
        notes=["The first pass of a process compares every object; later ones only changed ones."],
    )


if __name__ == "__main__":
    main()
