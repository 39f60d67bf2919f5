"""The update part of `bench.payload_engine`: a release of which a tenth has changed.

The release before is there and settled; that is not measured. In the next one every tenth manifest
has another label, of every kind in its share. A label is no new generation, even of a Deployment,
so nothing has to roll out anew, and what is measured is finding and writing the changed ones. The
server tells which objects were written.
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from bench.goals import BARE, OURS, at_least, at_most
from bench.payload import COMPONENTS, MANIFESTS
from bench.payload_cluster import make_ready, requests_made
from bench.results import Column, Measurement, Row, Verdict
from quarterdeck.kube import Client, RequestMetrics, load_kubeconfig
from quarterdeck.kube.kinds import GroupVersionKind, discover
from quarterdeck.operators.cluster_version.sync import Cluster, PayloadProgress, run_payload
from quarterdeck.operators.cluster_version.sync.desired import desired_object
from quarterdeck.operators.cluster_version.sync.plan import FIELD_MANAGER
from quarterdeck.operators.cluster_version.sync.run import WORKERS
from quarterdeck.payload.graph import Mode, build_graph
from quarterdeck.payload.model import Manifest, ObjectIdentity

ONE_IN = 10
CHANGED = MANIFESTS // ONE_IN
NOTE = "quarterdeck.dev/bench"


def next_release(manifests: Sequence[Manifest]) -> tuple[list[Manifest], set[ObjectIdentity]]:
    """The manifests of the next release, and which objects are changed in it."""
    per_component = MANIFESTS // COMPONENTS
    changed: set[ObjectIdentity] = set()
    found: list[Manifest] = []
    for place, manifest in enumerate(manifests):
        # Another place in each component, so that all kinds have their share.
        if place % ONE_IN == place // per_component % ONE_IN:
            changed.add(manifest.identity)
            meta = manifest.object["metadata"]
            labels = {**meta.get("labels", {}), NOTE: "changed"}
            obj = {**manifest.object, "metadata": {**meta, "labels": labels}}
            found.append(msgspec.structs.replace(manifest, object=obj))
        else:
            found.append(manifest)
    return found, changed


async def engine(kubeconfig: Path, manifests: Sequence[Manifest]) -> dict[str, float]:
    """The update by the engine, from the settled release before to the end."""
    registry = CollectorRegistry()
    settings = load_kubeconfig(kubeconfig)
    wanted, _ = next_release(manifests)
    async with (
        Client(settings, metrics=RequestMetrics(registry)) as client,
        Cluster(client) as cluster,
        Client(load_kubeconfig(kubeconfig)) as others,
    ):
        await _settle(cluster, others, manifests)
        versions = await _versions(others, manifests)
        asked, sent = requests_made(registry), requests_made(registry, writes=True)
        began, cpu = time.perf_counter(), time.process_time()
        progress = await run_payload(wanted, Mode.UPDATING, cluster, lambda _: None)
        assert progress.completed
        figures = {
            "seconds": time.perf_counter() - began,
            "cpu_seconds": time.process_time() - cpu,
            "requests": requests_made(registry) - asked,
            "writes": requests_made(registry, writes=True) - sent,
        }
        return figures | await _written(others, manifests, versions)


async def bare(kubeconfig: Path, manifests: Sequence[Manifest]) -> dict[str, float]:
    """Only the writes of what has changed: as the engine does them, in its order."""
    wanted, changed = next_release(manifests)
    async with Client(load_kubeconfig(kubeconfig)) as client:
        async with Cluster(client) as cluster:
            await _settle(cluster, client, manifests)
        versions = await _versions(client, manifests)
        kinds = await discover(client)
        ordered = build_graph(wanted, Mode.UPDATING).manifests
        remaining = iter([one for one in ordered if one.identity in changed])

        async def work() -> None:
            for manifest in remaining:
                kind = kinds[GroupVersionKind.of(manifest.object)]
                desired = desired_object(manifest, namespaced=kind.namespaced)
                await client.apply(kind, desired, field_manager=FIELD_MANAGER)

        began, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(work() for _ in range(WORKERS[Mode.UPDATING])))
        figures = {
            "seconds": time.perf_counter() - began,
            "cpu_seconds": time.process_time() - cpu,
            "requests": float(len(changed)),
            "writes": float(len(changed)),
        }
        return figures | await _written(client, manifests, versions)


async def _settle(cluster: Cluster, others: Client, manifests: Sequence[Manifest]) -> None:
    """Bring the cluster to the release before, and look once more that nothing is left."""

    def ignore(_: PayloadProgress) -> None:
        pass

    first = asyncio.create_task(run_payload(manifests, Mode.INITIALIZING, cluster, ignore))
    await make_ready(others, manifests)
    await first
    assert (await run_payload(manifests, Mode.RECONCILING, cluster, ignore)).completed


async def _versions(client: Client, manifests: Sequence[Manifest]) -> dict[ObjectIdentity, str]:
    """The resource version of every object of the payload."""
    kinds = await discover(client)
    wanted = {manifest.identity for manifest in manifests}
    found: dict[ObjectIdentity, str] = {}
    for gvk in {GroupVersionKind.of(manifest.object) for manifest in manifests}:
        for one in (await client.list(kinds[gvk])).items:
            meta = one["metadata"]
            identity = ObjectIdentity(gvk.group, gvk.kind, meta.get("namespace", ""), meta["name"])
            if identity in wanted:
                found[identity] = meta["resourceVersion"]
    assert len(found) == len(wanted)
    return found


async def _written(
    client: Client, manifests: Sequence[Manifest], before: dict[ObjectIdentity, str]
) -> dict[str, float]:
    """Of the objects that have another version now, how many should have, and how many not."""
    _, changed = next_release(manifests)
    after = await _versions(client, manifests)
    written = {one for one, version in after.items() if before[one] != version}
    return {"written": len(written & changed), "needless": len(written - changed)}


def measurement(figures: dict[str, dict[str, float]], repeats: int) -> Measurement:
    """The table and its verdicts, from the figures of each subject."""
    seconds = figures[BARE]["seconds"]
    rows = [
        Row(subject=name, figures=one | {"speed": seconds / one["seconds"]})
        for name, one in figures.items()
    ]
    return Measurement(
        name="payload-update",
        title=f"an update that changes {CHANGED} of {MANIFESTS} manifests, median of {repeats}",
        columns=[
            Column(figure="seconds", title="time", format=",.2f", unit=" s"),
            Column(figure="speed", title="speed, to bare", format=".2f"),
            Column(figure="cpu_seconds", title="CPU", format=",.2f", unit=" s"),
            Column(figure="requests", title="requests"),
            Column(figure="writes", title="writes"),
            Column(figure="written", title="changed objects written"),
            Column(figure="needless", title="others written"),
        ],
        rows=rows,
        verdicts=_verdicts(figures[OURS]),
        notes=["The engine waits for each run level in turn; the bare client waits for nothing."],
    )


def _verdicts(ours: dict[str, float]) -> list[Verdict]:
    return [
        at_least("changed objects written", CHANGED, ours["written"], "objects"),
        at_most("others written", 0, ours["needless"], "objects"),
        at_most("writes", CHANGED, ours["writes"], "writes"),
    ]
