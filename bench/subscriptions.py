"""`python -m bench.subscriptions [--count 50]`: one config change, and the same in all at once.

A cluster of its own with as many Subscriptions, each with one Deployment without replicas. The time
of a change is that from its PATCH to the Deployment with the new variable. Beside it, the bare
client writes the same two objects, with as many requests at once as the operator has workers.
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path

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
from quarterdeck.testing.operator_process import OwnOperators
from quarterdeck.versions import Version

NAMESPACE = "bench"
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
        with ControlPlane(root / "cluster", binaries, durable=False) as plane:
            install_own_definitions(plane.requests())
            for name, entries in catalog_entries([_bundle(one) for one in range(count)]).items():
                path = root / "catalogs" / "all" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("\n".join(map(json.dumps, entries)))
            operators = OwnOperators(root)
            try:
                operators(plane, "subscriptions", f"--catalog-root={root / 'catalogs'}")()
                asyncio.run(_measure(plane, count))
            finally:
                operators.kill()


async def _measure(plane: ControlPlane, count: int) -> None:
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

        began = time.monotonic()
        await _each(range(count), lambda one: _configure(client, one, "all"))
        await _until(lambda: _all_have(deployments, count, "all"))
        together = time.monotonic() - began

        began = time.monotonic()
        await _each(range(count), lambda one: _configure_bare(client, one, "bare"))
        bare = time.monotonic() - began
        following.cancel()
    print(f"{'Subscriptions':<32}{count:>10,}")
    print(f"{'all installed, s':<32}{installed:>10.2f}")
    print(f"{'one change, median ms':<32}{statistics.median(singles) * 1000:>10.1f}")
    print(f"{'a change in all, s':<32}{together:>10.2f}")
    print(f"{'the bare client, s':<32}{bare:>10.2f}")
    print(f"{'throughput, ratio':<32}{bare / together:>10.2f}")


async def _configure(client: Client, one: int, value: str) -> None:
    config = [{"env": [{"name": "MARK", "value": value}]}]
    await client.patch(SUBSCRIPTIONS, f"p{one}", {"spec": {"config": config}}, NAMESPACE)


async def _configure_bare(client: Client, one: int, value: str) -> None:
    """The same two writes, the second under a name that the operator does not look at."""
    notes = {"metadata": {"annotations": {"example.com/mark": value}}}
    await client.patch(SUBSCRIPTIONS, f"p{one}", notes, NAMESPACE)
    await client.patch(DEPLOYMENTS, f"d{one}", {"spec": {"template": notes}}, NAMESPACE)


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
