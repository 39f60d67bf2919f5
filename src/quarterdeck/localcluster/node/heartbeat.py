"""The node itself: its status, and the Lease that says that it lives.

The Node object, with its labels and its taint, is made by whoever starts the cluster: a node
may not give itself a role.
"""

import asyncio
import os
import platform
from collections.abc import Awaitable, Callable
from datetime import datetime

from quarterdeck import __version__
from quarterdeck.api.meta import LEASES, NODES, Object
from quarterdeck.kube import Client, KubeError, NotFound
from quarterdeck.localcluster.node.settings import NodeSettings
from quarterdeck.localcluster.node.times import format_time
from quarterdeck.log import get_logger

log = get_logger("node.heartbeat")

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW_EVERY = 10.0
STATUS_EVERY = 300.0
RETRY = 1.0

_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


def node_status(settings: NodeSettings, port: int, now: datetime) -> Object:
    """What the node says about itself."""
    beat = {"lastHeartbeatTime": format_time(now), "lastTransitionTime": format_time(now)}
    conditions = [
        {"type": kind, "status": "False", "reason": "NotMeasured", **beat} for kind in _PRESSURES
    ]
    conditions.append({"type": "Ready", "status": "True", "reason": "AgentReady", **beat})
    return {
        "conditions": conditions,
        "addresses": [
            {"type": "InternalIP", "address": "127.0.0.1"},
            {"type": "Hostname", "address": settings.name},
        ],
        "capacity": settings.capacity,
        "allocatable": settings.capacity,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": {
            "architecture": "arm64" if platform.machine() == "aarch64" else "amd64",
            "operatingSystem": "linux",
            "osImage": "this machine",
            "kernelVersion": os.uname().release,
            "containerRuntimeVersion": f"processes://{__version__}",
            "kubeletVersion": f"quarterdeck-{__version__}",
            "kubeProxyVersion": "",
            "bootID": "",
            "machineID": "",
            "systemUUID": "",
        },
    }


def keep_transitions(status: Object, old: Object) -> Object:
    """The status with the transition times of conditions that stayed as they were."""
    was = {entry["type"]: entry for entry in old.get("conditions") or []}
    conditions = [
        {**entry, "lastTransitionTime": was[entry["type"]]["lastTransitionTime"]}
        if was.get(entry["type"], {}).get("status") == entry["status"]
        else entry
        for entry in status["conditions"]
    ]
    return {**status, "conditions": conditions}


class Heartbeat:
    """Keeps the node's status and Lease, whatever the API server does."""

    def __init__(
        self, settings: NodeSettings, client: Client, port: int, clock: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._client = client
        self._port = port
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._every(STATUS_EVERY, self._report), name="node status")
            tasks.create_task(self._every(RENEW_EVERY, self._renew), name="node lease")

    async def _every(self, seconds: float, write: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await write()
            except KubeError as error:
                log.warning("node heartbeat failed", error=str(error))
                await asyncio.sleep(RETRY)
            else:
                await asyncio.sleep(seconds)

    async def _report(self) -> None:
        name = self._settings.name
        node = await self._client.get(NODES, name)
        fresh = node_status(self._settings, self._port, self._clock())
        status = keep_transitions(fresh, node.get("status") or {})
        await self._client.patch(NODES, name, {"status": status}, subresource="status")
        log.info("node is ready", node=name, port=self._port)

    async def _renew(self) -> None:
        name = self._settings.name
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": self._clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        try:
            await self._client.patch(LEASES, name, {"spec": spec}, LEASE_NAMESPACE)
        except NotFound:
            meta = {"name": name, "namespace": LEASE_NAMESPACE}
            await self._client.create(LEASES, {"metadata": meta, "spec": spec})
