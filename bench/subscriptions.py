"""`python -m bench.subscriptions [--count 50]`: one config change, and the same in all at once.

A cluster of its own with as many Subscriptions, each with one Deployment without replicas. The time
of a change is that from its PATCH to the Deployment with the new variable. Beside it, after the
operator has ended, the bare client writes the config and applies the whole Deployment, with as many
requests at once as the operator has workers; and once more with the statuses, as many as the audit
log has of the operator.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec

from quarterdeck.api.meta import DEPLOYMENTS, NAMESPACES, Object
from quarterdeck.api.operators_v1alpha1 import (
    CATALOG_SOURCES,
    CLUSTER_SERVICE_VERSIONS,
    SUBSCRIPTIONS,
)
from quarterdeck.kube import Cache, Client, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.operators.subscriptions.catalog.bundles import BundleDirectory, catalog_entries
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.operator_process import OwnOperators
from quarterdeck.versions import Version

NAMESPACE = "bench"
MANAGER = "quarterdeck-subscriptions"
USER = "system:serviceaccount:openshift-operator-lifecycle-manager:subscription-operator"
AT_ONCE = 8
SINGLE = 10


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=50)
    count = parser.parse_args().count
    binaries = ensure_binaries(BinarySettings.from_environment(os.environ))
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        root = Path(directory)
        with ControlPlane(root / "cluster", binaries, durable=False, audit=True) as plane:
            install_own_definitions(plane.requests())
            for name, entries in catalog_entries([_bundle(one) for one in range(count)]).items():
                path = root / "catalogs" / "all" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("\n".join(map(json.dumps, entries)))
            operators = OwnOperators(root)
            try:
                operators(plane, "subscriptions", f"--catalog-root={root / 'catalogs'}")()
                measured = asyncio.run(_measure(plane, count))
            finally:
                operators.kill()
            bare = asyncio.run(_measure_bare(plane, count, "bare", {}))
            whole = asyncio.run(_measure_bare(plane, count, "whole", measured.writes))
    print(f"{'Subscriptions':<32}{count:>10,}")
    print(f"{'all installed, s':<32}{measured.installed:>10.2f}")
    print(f"{'one change, median ms':<32}{measured.one * 1000:>10.1f}")
    print(f"{'a change in all, s':<32}{measured.together:>10.2f}")
    for what, number in sorted(measured.writes.items()):
        print(f"{'  writes, ' + what:<32}{number:>10,}")
    print(f"{'bare client, without status, s':<32}{bare:>10.2f}")
    print(f"{'bare client, all writes, s':<32}{whole:>10.2f}")
    print(f"{'throughput, ratio':<32}{bare / measured.together:>10.2f}")
    print(f"{'throughput, all writes':<32}{whole / measured.together:>10.2f}")


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator needed, in seconds, and its writes for a change in all."""

    installed: float
    one: float
    together: float
    writes: dict[str, int]


async def _measure(plane: ControlPlane, count: int) -> Measured:
    async with Client(load_kubeconfig(plane.kubeconfig)) as client:
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        spec = {"sourceType": "directory", "directory": "all"}
        await client.create(CATALOG_SOURCES, _named(CATALOG_SOURCES.kind, "catalog", spec))
        deployments = Cache(client, DEPLOYMENTS, namespace=NAMESPACE)
        following = asyncio.create_task(deployments.run())
        began = time.monotonic()
        await _each(
            range(count),
            lambda one: client.create(
                SUBSCRIPTIONS, _named(SUBSCRIPTIONS.kind, f"p{one}", {"name": f"p{one}"})
            ),
        )
        await _until(lambda: _all_installed(client, count))
        installed = time.monotonic() - began

        singles = []
        for number in range(SINGLE):
            began = time.monotonic()
            await _configure(client, number % count, f"single-{number}")
            await _until(partial(_has, deployments, number % count, f"single-{number}"))
            singles.append(time.monotonic() - began)

        await _until(lambda: _all_settled(client, count))
        await asyncio.sleep(1.0)  # The server logs a write a moment after its answer.
        before = _writes(plane)
        began = time.monotonic()
        await _each(range(count), lambda one: _configure(client, one, "all"))
        await _until(lambda: _all_have(deployments, count, "all"))
        together = time.monotonic() - began
        await _until(lambda: _all_settled(client, count))
        await asyncio.sleep(1.0)
        following.cancel()
    return Measured(
        installed=installed,
        one=statistics.median(singles),
        together=together,
        writes=dict(_writes(plane) - before),
    )


def _writes(plane: ControlPlane) -> Counter[str]:
    """The operator's writes so far, by resource."""
    return Counter(one.resource for one in writes_by(plane.audit_log, USER))


async def _measure_bare(
    plane: ControlPlane, count: int, value: str, writes: dict[str, int]
) -> float:
    """The seconds that a change in all takes without an operator.

    The status of each Subscription and version is written as often as in `writes`, on average.
    """
    async with Client(load_kubeconfig(plane.kubeconfig)) as client:
        live = {one["metadata"]["name"]: one for one in await _deployments(client)}

        async def change(one: int) -> None:
            await _configure(client, one, value)
            await client.apply(DEPLOYMENTS, _marked(live[f"d{one}"], value), field_manager=MANAGER)
            for resource, name in (
                (SUBSCRIPTIONS.plain, f"p{one}"),
                (CLUSTER_SERVICE_VERSIONS.plain, f"p{one}.v1.0.0"),
            ):
                for number in range(round(writes.get(f"{resource.plural}/status", 0) / count)):
                    status = {"observedGeneration": 1000 + number}
                    patch = {"status": status}
                    await client.patch(resource, name, patch, NAMESPACE, subresource="status")

        began = time.monotonic()
        await _each(range(count), change)
        return time.monotonic() - began


async def _deployments(client: Client) -> list[Object]:
    return (await client.list(DEPLOYMENTS, NAMESPACE)).items


def _marked(live: Object, value: str) -> Object:
    """The Deployment as the operator applies it, with another value of the variable."""
    meta = live["metadata"]
    # Without its version: the Deployment's controller may still be writing the status.
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences")
    spec = json.loads(json.dumps(live["spec"]))
    spec["template"]["spec"]["containers"][0]["env"] = [{"name": "MARK", "value": value}]
    return {"metadata": {name: meta[name] for name in kept if name in meta}, "spec": spec}


async def _configure(client: Client, one: int, value: str) -> None:
    config = [{"env": [{"name": "MARK", "value": value}]}]
    await client.patch(SUBSCRIPTIONS, f"p{one}", {"spec": {"config": config}}, NAMESPACE)


async def _has(deployments: Cache[Object], one: int, value: str) -> bool:
    found = next((it for it in deployments.list() if it["metadata"]["name"] == f"d{one}"), None)
    if found is None:
        return False
    env = found["spec"]["template"]["spec"]["containers"][0].get("env") or ()
    return any(item.get("value") == value for item in env)


async def _all_have(deployments: Cache[Object], count: int, value: str) -> bool:
    marks = [
        item.get("value")
        for it in deployments.list()
        for item in it["spec"]["template"]["spec"]["containers"][0].get("env") or ()
    ]
    return marks.count(value) == count


async def _all_settled(client: Client, count: int) -> bool:
    """Whether the operator has acted on all changes."""
    found = (await client.list(SUBSCRIPTIONS, NAMESPACE)).items
    done = [one for one in found if one.status.observed_generation == one.metadata.generation]
    return len(done) == count and await _all_installed(client, count)


async def _all_installed(client: Client, count: int) -> bool:
    found = await client.list(CLUSTER_SERVICE_VERSIONS, NAMESPACE)
    return sum(one.status.phase == "Succeeded" for one in found.items) == count


async def _until(holds: Callable[[], Awaitable[bool]], limit: float = 600.0) -> None:
    deadline = time.monotonic() + limit
    while not await holds():
        if time.monotonic() > deadline:
            raise TimeoutError("the cluster did not get there in time")
        await asyncio.sleep(0.005)


async def _each(numbers: Iterable[int], do: Callable[[int], Awaitable[object]]) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def limited(one: int) -> None:
        async with places:
            await do(one)

    await asyncio.gather(*(limited(one) for one in numbers))


def _named(kind: str, name: str, spec: Object) -> Object:
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def _bundle(number: int) -> BundleDirectory:
    name, labels = f"p{number}.v1.0.0", {"app": f"d{number}"}
    pod = {"containers": [{"name": "main", "image": "example.com/x:1"}]}
    deployment = {
        "name": f"d{number}",
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    csv = _named(CLUSTER_SERVICE_VERSIONS.kind, name, {})
    del csv["metadata"]["namespace"]
    csv["spec"] = {
        "displayName": name,
        "version": "1.0.0",
        "installModes": [{"type": "OwnNamespace", "supported": True}],
        "install": {"strategy": "deployment", "spec": {"deployments": [deployment]}},
    }
    return BundleDirectory(
        directory="",
        package=f"p{number}",
        channels=("c",),
        default_channel="c",
        name=name,
        version=Version(1, 0, 0),
        replaces="",
        skips=(),
        skip_range="",
        objects=(csv,),
    )


if __name__ == "__main__":
    main()
