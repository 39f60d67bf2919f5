"""The cluster of `bench.subscriptions`: Subscriptions with one Deployment each, and who watches."""

import asyncio
import json
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from quarterdeck.api.config_v1 import PROXIES
from quarterdeck.api.meta import DEPLOYMENTS, NAMESPACES, Object
from quarterdeck.api.operators_v1alpha1 import (
    CATALOG_SOURCES,
    CLUSTER_SERVICE_VERSIONS,
    SUBSCRIPTIONS,
)
from quarterdeck.kube import Cache, Change, Client
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.operators.subscriptions.catalog.bundles import BundleDirectory, catalog_entries
from quarterdeck.operators.subscriptions.install.applied import APPLIED, last_applied, with_record
from quarterdeck.status import rollout
from quarterdeck.versions import Version

NAMESPACE = "bench"
LIMIT = 900.0


@contextmanager
def subscriptions_cluster(root: Path, count: int) -> Iterator[ControlPlane]:
    """A control plane of its own, and a catalog with as many packages below `root/catalogs`."""
    binaries = ensure_binaries(BinarySettings.from_environment(os.environ))
    with ControlPlane(root / "cluster", binaries, durable=False, audit=True) as plane:
        install_own_definitions(plane.requests())
        for name, entries in catalog_entries([_bundle(one) for one in range(count)]).items():
            path = root / "catalogs" / "all" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(map(json.dumps, entries)))
        yield plane


async def create_all(client: Client, count: int) -> None:
    """Create the namespace, its catalog and the Subscriptions."""
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    spec = {"sourceType": "directory", "directory": "all"}
    await client.create(CATALOG_SOURCES, _named(CATALOG_SOURCES.kind, "catalog", spec))
    for one in range(count):
        made = _named(SUBSCRIPTIONS.kind, f"p{one}", {"name": f"p{one}"})
        await client.create(SUBSCRIPTIONS, made)


async def configure(client: Client, one: int, value: str) -> int:
    """Give a Subscription a config entry with this value; its generation."""
    config = [{"env": [{"name": "MARK", "value": value}]}]
    made = await client.patch(SUBSCRIPTIONS, f"p{one}", {"spec": {"config": config}}, NAMESPACE)
    return made.metadata.generation


async def set_proxy(client: Client, value: str) -> None:
    """Give the cluster this proxy."""
    proxy = {"metadata": {"name": "cluster"}, "spec": {"httpProxy": value}}
    await client.apply(PROXIES, proxy, field_manager="bench")


def marked(live: Object, value: str) -> Object:
    """The Deployment exactly as the operator would apply it, with this value of the variable."""
    applied = last_applied(live)
    assert applied is not None
    meta = applied["metadata"]
    notes = {name: text for name, text in meta["annotations"].items() if name != APPLIED}
    spec = json.loads(json.dumps(applied["spec"]))
    spec["template"]["spec"]["containers"][0]["env"] = [{"name": "MARK", "value": value}]
    return with_record({"metadata": {**meta, "annotations": notes}, "spec": spec})


class Watched:
    """What is true of the objects, counted as their changes arrive."""

    def __init__(self, client: Client) -> None:
        self._caches = (
            Cache(client, DEPLOYMENTS, namespace=NAMESPACE),
            Cache(client, SUBSCRIPTIONS.plain, namespace=NAMESPACE),
            Cache(client, CLUSTER_SERVICE_VERSIONS.plain, namespace=NAMESPACE),
        )
        self._counts: Counter[str] = Counter()
        judges = (_about_deployment, _about_subscription, _about_version)
        for cache, judge in zip(self._caches, judges, strict=True):
            cache.subscribe(self._counter(judge))

    def _counter(self, judge: Callable[[Object], list[str]]) -> Callable[[Change[Object]], None]:
        def changed(change: Change[Object]) -> None:
            if change.old is not None:
                self._counts.subtract(judge(change.old))
            if change.new is not None:
                self._counts.update(judge(change.new))

        return changed

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Watch while the context lasts."""
        tasks = [asyncio.create_task(cache.run()) for cache in self._caches]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def with_value(self, value: str) -> int:
        """The Deployments with this value."""
        return self._counts[f"value {value}"]

    def rolled_out(self) -> int:
        """The Deployments whose roll-out is complete."""
        return self._counts["rolled out"]

    def observed(self) -> int:
        """The Subscriptions whose generation is observed."""
        return self._counts["observed"]

    def installed(self) -> int:
        """The versions that have succeeded."""
        return self._counts["Succeeded"]

    def has(self, one: int, value: str) -> bool:
        """Whether this Deployment has the value."""
        return bool(self._counts[f"d{one} {value}"])


def _about_deployment(obj: Object) -> list[str]:
    values = [
        item.get("value")
        for item in obj["spec"]["template"]["spec"]["containers"][0].get("env") or ()
    ]
    name = obj["metadata"]["name"]
    told = [f"{what} {value}" for value in values for what in ("value", name)]
    return [*told, *(["rolled out"] if isinstance(rollout.deployment(obj), rollout.Done) else [])]


def _about_subscription(obj: Object) -> list[str]:
    observed = (obj.get("status") or {}).get("observedGeneration")
    return ["observed"] if observed == obj["metadata"]["generation"] else []


def _about_version(obj: Object) -> list[str]:
    return [str((obj.get("status") or {}).get("phase"))]


async def until(holds: Callable[[], bool]) -> None:
    """Return when this holds; a short look at counts that are kept."""
    deadline = time.monotonic() + LIMIT
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("the cluster did not get there in time")
        await asyncio.sleep(0.005)


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
