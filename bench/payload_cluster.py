"""What the parts of `bench.payload_engine` share: the payload, who reports, and what is counted."""

import asyncio
import resource
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from quarterdeck.api.meta import DEPLOYMENTS, Object, foreign
from quarterdeck.kube import Client, NotFound
from quarterdeck.payload.filters import included
from quarterdeck.payload.load import load_payload
from quarterdeck.payload.model import KnownRelease, Manifest
from quarterdeck.payload.observed import SELF_MANAGED, ObservedCluster

OPERATORS = foreign(
    "config.openshift.io/v1", "ClusterOperator", "clusteroperators", namespaced=False
)


def read_manifests(directory: Path) -> tuple[Manifest, ...]:
    """The manifests of a payload that count."""
    payload = load_payload(directory, release=KnownRelease(version="1.2.3"), profile=SELF_MANAGED)
    return included(payload.manifests, ObservedCluster())


async def make_ready(client: Client, manifests: Sequence[Manifest]) -> None:
    """Report, when they are there, what controllers and operators would of a healthy cluster."""
    for manifest in manifests:
        name, namespace = manifest.identity.name, manifest.identity.namespace
        if manifest.identity.kind == "Deployment":
            counts = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), 1)
            status: Object = {"observedGeneration": 1, **counts, "readyReplicas": 1}
            await when_there(lambda: _report(client, DEPLOYMENTS, name, namespace, status))  # noqa: B023
        elif manifest.identity.kind == "ClusterOperator":
            now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            status = manifest.object["status"] | {
                "conditions": [
                    {"type": type_, "status": value, "lastTransitionTime": now}
                    for type_, value in (("Available", "True"), ("Degraded", "False"))
                ]
            }
            await when_there(lambda: _report(client, OPERATORS, name, "", status))  # noqa: B023


async def _report(client: Client, kind: Any, name: str, namespace: str, status: Object) -> None:
    await client.patch(kind, name, {"status": status}, namespace, subresource="status")


async def when_there(ask: Callable[[], Awaitable[object]], pause: float = 0.05) -> None:
    """Return when what is asked for is there."""
    while True:
        try:
            await ask()
        except NotFound:
            await asyncio.sleep(pause)
        else:
            return


def requests_made(registry: CollectorRegistry, *, writes: bool = False) -> float:
    """How many requests were counted so far, or of them those that do not only read."""
    return sum(
        sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "rest_client_requests_total"
        and not (writes and sample.labels["method"] == "GET")
    )


def peak_megabytes() -> float:
    """The most memory that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
