"""The router's conditions on its own pod, which the ingress operator reads.

They are written under the router's own account, and only when they say something new.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from quarterdeck.api.meta import PODS, Object
from quarterdeck.kube import Client, KubeError
from quarterdeck.log import get_logger
from quarterdeck.router.settings import Settings

log = get_logger("router.pod-conditions")

RETRY_INTERVAL = 5.0
"""Seconds after a write that failed."""
_LONGEST_MESSAGE = 2000


class ConditionReport(msgspec.Struct, frozen=True):
    """What a condition says."""

    status: bool
    reason: str
    message: str


class PodConditions:
    """The conditions of the pod, all of one field manager, so that each write has all of them."""

    def __init__(self, client: Client, settings: Settings, now: Callable[[], datetime]) -> None:
        self._client = client
        self._settings = settings
        self._now = now
        self._reports: dict[str, ConditionReport] = {}
        self._new = asyncio.Event()

    def report(self, type_: str, report: ConditionReport) -> None:
        """Let the pod say this."""
        if self._reports.get(type_) != report:
            self._reports[type_] = report
            self._new.set()

    async def run(self) -> None:
        """Write what is new until cancelled; a router that is not in a pod writes nothing."""
        while True:
            await self._new.wait()
            self._new.clear()
            if not self._settings.pod_name or not self._settings.pod_namespace:
                continue
            try:
                await self._write()
            except KubeError as error:
                log.warning("conditions of the pod not written", error=str(error))
                await asyncio.sleep(RETRY_INTERVAL)
                self._new.set()

    async def _write(self) -> None:
        name, namespace = self._settings.pod_name, self._settings.pod_namespace
        pod = await self._client.get(PODS, name, namespace)
        if wanted := conditions(pod, self._reports, self._now()):
            await self._client.apply(
                PODS,
                {
                    "metadata": {"name": name, "namespace": namespace},
                    "status": {"conditions": wanted},
                },
                field_manager="quarterdeck-router",
                subresource="status",
            )


def conditions(pod: Object, reports: Mapping[str, ConditionReport], now: datetime) -> list[Object]:
    """All conditions to write on the pod; none if it has them already."""
    live = {one.get("type"): one for one in (pod.get("status") or {}).get("conditions") or ()}
    wanted = []
    for type_, report in sorted(reports.items()):
        said = {
            "type": type_,
            "status": "True" if report.status else "False",
            "reason": report.reason,
            "message": report.message[:_LONGEST_MESSAGE],
        }
        was: Object = live.get(type_) or {}
        since = was.get("lastTransitionTime") if was.get("status") == said["status"] else None
        written = msgspec.to_builtins(now.replace(microsecond=0))
        wanted.append({**said, "lastTransitionTime": since or written})
    return wanted if any(one != _known(live.get(one["type"]), one) for one in wanted) else []


def _known(live: Object | None, like: Object) -> Object:
    """What a live condition says in the fields of ours."""
    return {field: (live or {}).get(field) for field in like}
