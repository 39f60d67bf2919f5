"""What the node asks of the API server and tells it, one pod at a time: tokens, status, removal.

Apart from `pods`, so that a server that does not answer holds up the report and never a process.
It is woken by `pods` after each step, and wakes it when there is a new token.
"""

from collections.abc import Callable

from quarterdeck.api.meta import NODES, PODS, Key, Object
from quarterdeck.controller import DONE, Objects, Result
from quarterdeck.kube import AlreadyExists, Cache, Client, Conflict, KubeError, NotFound
from quarterdeck.localcluster.node.pod.lifecycle import FINISHED, BackOff, Remove, is_deleted, plan
from quarterdeck.localcluster.node.pod.pods import Pods
from quarterdeck.localcluster.node.pod.run import PodRun
from quarterdeck.localcluster.node.pod.status import pod_status
from quarterdeck.localcluster.node.static_pods.static import (
    StaticPods,
    is_mirror,
    mirror_of,
    mirrors,
)
from quarterdeck.localcluster.node.times import Clock
from quarterdeck.localcluster.node.volumes.contents import references
from quarterdeck.log import get_logger

log = get_logger("node.reports")

FIELD_MANAGER = "quarterdeck-node"
RETRY = 1.0
"""Seconds until something that the API server did not answer is tried again."""
AFTER_CONFLICT = 0.05
"""Seconds; the newer object is on its way to the cache."""


class Reports:
    """Keeps the API server and the pods of this node in step."""

    def __init__(
        self,
        pods: Pods,
        cache: Cache[Object],
        client: Client,
        *,
        node: str,
        static: StaticPods,
        back_off: BackOff,
        wake: Callable[[Key], None],
        clock: Clock,
    ) -> None:
        self._pods = pods
        self._cache = cache
        self._client = client
        self._objects = Objects(PODS, cache, client, FIELD_MANAGER)
        self._node = node
        self._static = static
        self._back_off = back_off
        self._wake = wake
        self._clock = clock

    async def reconcile(self, key: Key) -> Result:
        """Get the pod's tokens, write its status, remove it if its end is reached."""
        pod, told = self._pods.pod_of(key), self._cache.get(key)
        if pod is None and told is not None and is_mirror(told):
            return Result(requeue_after=await self._delete(key, told))
        run = self._pods.run_of(key, pod) if pod is not None else None
        if pod is None or run is None:
            return DONE
        if self._static.get(key) is not None:
            waits = [await self._mirror(key, pod, told, run)]
        else:
            waits = [await self._refresh_tokens(key, pod, run), await self._write_status(pod, run)]
        decided = plan(run.observed(pod), self._back_off, self._clock())
        if Remove() in decided.actions:
            waits.append(await self._remove(key, pod, run))
        return Result(requeue_after=min((each for each in waits if each is not None), default=None))

    async def _mirror(
        self, key: Key, pod: Object, told: Object | None, run: PodRun
    ) -> float | None:
        """Tell the API server of a static pod, by an object that mirrors it."""
        status = pod_status(run.observed(pod), self._back_off, self._clock())
        self._static.set_status(key, status)
        try:
            if told is None and not is_deleted(pod):
                node = await self._client.get(NODES, self._node)
                told = await self._client.create(PODS, mirror_of(pod, node))
            if told is None:
                return None
            if not mirrors(told, pod):
                return await self._delete(key, told)
            # What the API server has added stays: its quality of service, for one.
            await self._objects.set_status(told, {**(told.get("status") or {}), **status})
        except (AlreadyExists, Conflict, NotFound):
            return AFTER_CONFLICT
        except KubeError as error:
            log.v(4).info("static pod not mirrored", pod=str(key), error=str(error))
            return RETRY
        return None

    async def _refresh_tokens(self, key: Key, pod: Object, run: PodRun) -> float | None:
        """Get tokens that are missing or due; seconds until the next one is."""
        if is_deleted(pod) or pod.get("status", {}).get("phase") in FINISHED:
            return None
        try:
            if await run.tokens.refresh(pod, references(pod).tokens, self._clock().boot):
                self._wake(key)
        except KubeError as error:
            log.v(4).info("no token for a pod yet", pod=str(key), error=str(error))
            return run.tokens.retry_after
        at = run.tokens.renew_at
        return max(0.0, at - self._clock().boot) if at is not None else None

    async def _write_status(self, pod: Object, run: PodRun) -> float | None:
        """Write the status if it is not so already; when to try again if that failed."""
        status = pod_status(run.observed(pod), self._back_off, self._clock())
        try:
            await self._objects.set_status(pod, status)
        except NotFound:
            return None
        except Conflict:
            return AFTER_CONFLICT
        except KubeError as error:
            log.warning("status not written", pod=run.uid, error=str(error))
            return RETRY
        return None

    async def _remove(self, key: Key, pod: Object, run: PodRun) -> float | None:
        """The last step: the files, then the object."""
        run.remove_files()
        told = self._cache.get(key)
        wait = await self._delete(key, told) if told is not None else None
        if self._static.get(key) is not None:
            self._static.removed(key)
            self._wake(key)
        return wait

    async def _delete(self, key: Key, told: Object) -> float | None:
        """Remove the object; when to try again if that failed."""
        uid = told["metadata"]["uid"]
        try:
            await self._client.delete(PODS, key.name, key.namespace, uid=uid, grace_seconds=0)
        except (NotFound, Conflict):
            return None
        except KubeError as error:
            log.warning("pod not removed", pod=str(key), error=str(error))
            return RETRY
        return None
