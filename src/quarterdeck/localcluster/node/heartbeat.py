"""Reports the node: writes its status, and renews its Lease.

The start of the cluster creates the Node object with its labels and its taint: a node must not set
its own role.
"""

import asyncio
import os
import platform
from collections.abc import Awaitable, Callable
from datetime import datetime

from quarterdeck import __version__
from quarterdeck.api.meta import LEASES, NODES, Object
from quarterdeck.api.times import format_time
from quarterdeck.controller.tasks import endless
from quarterdeck.kube import Client, KubeError, NotFound
from quarterdeck.localcluster.node.settings import NodeSettings
from quarterdeck.log import get_logger

log = get_logger("node.heartbeat")

LEASE_NAMESPACE = "kube-node-lease"
STATUS_PERIOD = 300.0
"""Seconds after which the status is written even if nothing has changed."""
RETRY_SECONDS = 1.0

_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


def node_status(settings: NodeSettings, port: int, now: datetime) -> Object:
    """The status that the node reports."""
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


def is_reported(status: Object, old: Object) -> bool:
    """Whether the API server already has this status, apart from the heartbeat times.

    It can differ from what we wrote: the control plane marks a node Unknown when its Lease expires,
    for example because the API server was away.
    """
    beats = ("lastHeartbeatTime", "lastTransitionTime")

    def bare(conditions: list[Object]) -> dict[str, Object]:
        return {
            entry["type"]: {key: value for key, value in entry.items() if key not in beats}
            for entry in conditions
        }

    fields = {key: value for key, value in status.items() if key != "conditions"}
    ours, theirs = bare(status["conditions"]), bare(old.get("conditions") or [])
    return all(old.get(key) == value for key, value in fields.items()) and all(
        theirs.get(kind) == entry for kind, entry in ours.items()
    )


class Heartbeat:
    """Keeps the node's status and Lease current; retries while the API server fails."""

    def __init__(
        self, settings: NodeSettings, client: Client, port: int, clock: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._client = client
        self._port = port
        self._clock = clock
        self._monotonic = asyncio.get_running_loop().time
        self._written = -STATUS_PERIOD

    async def run(self) -> None:
        """Write the status and renew the Lease until cancelled."""
        # Like the kubelet: three renewals may fail before the Lease expires.
        often = self._settings.lease_seconds / 4
        async with asyncio.TaskGroup() as tasks:
            for name, write in (("node status", self._report), ("node lease", self._renew)):
                tasks.create_task(endless(name, self._every(often, write)), name=name)

    async def _every(self, seconds: float, write: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await write()
            except KubeError as error:
                log.warning("node heartbeat failed", error=str(error))
                await asyncio.sleep(min(RETRY_SECONDS, seconds))
            else:
                await asyncio.sleep(seconds)

    async def _report(self) -> None:
        name = self._settings.name
        node = await self._client.get(NODES, name)
        old = node.get("status") or {}
        fresh = node_status(self._settings, self._port, self._clock())
        if is_reported(fresh, old) and self._monotonic() - self._written < STATUS_PERIOD:
            return
        status = keep_transitions(fresh, old)
        await self._client.patch(NODES, name, {"status": status}, subresource="status")
        self._written = self._monotonic()
        log.info("node is ready", node=name, port=self._port)

    async def _renew(self) -> None:
        name = self._settings.name
        spec = {
            "holderIdentity": name,
            "leaseDurationSeconds": self._settings.lease_seconds,
            "renewTime": self._clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        try:
            await self._client.patch(LEASES, name, {"spec": spec}, LEASE_NAMESPACE)
        except NotFound:
            meta = {"name": name, "namespace": LEASE_NAMESPACE}
            await self._client.create(LEASES, {"metadata": meta, "spec": spec})
