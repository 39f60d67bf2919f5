"""All objects of a cluster, to compare before and after."""

import asyncio
from pathlib import Path

from quarterdeck.kube import ApiError, Client, load_kubeconfig
from quarterdeck.kube.kinds import discover

PASSING = frozenset({"Event", "Lease", "Pod", "ReplicaSet", "ControllerRevision", "EndpointSlice"})
"""Kinds whose objects come and go by themselves."""

LATE = "kube-root-ca.crt"
"""A ConfigMap of each namespace, which the controller manager creates some time after its start."""


def all_objects(kubeconfig: Path) -> dict[tuple[str, str, str], str]:
    """By kind, namespace and name of each object: its uid."""
    return asyncio.run(_all_objects(kubeconfig))


async def _all_objects(kubeconfig: Path) -> dict[tuple[str, str, str], str]:
    found = {}
    async with Client(load_kubeconfig(str(kubeconfig))) as client:
        for kind, resource in (await discover(client)).items():
            if kind.kind in PASSING:
                continue
            try:
                listed = await client.list(resource)
            except ApiError:
                continue
            for obj in listed.items:
                meta = obj["metadata"]
                if meta["name"] == LATE:
                    continue
                key = (f"{kind.kind}.{kind.group}", meta.get("namespace", ""), meta["name"])
                found[key] = meta["uid"]
    return found
