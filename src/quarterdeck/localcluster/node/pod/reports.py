"""The requests to the API server about a pod: tokens, status, mirror pod, deletion.

It is separate from `pods`, so that a server that does not answer delays only reports, never a
process. `pods` wakes it after each step, and it wakes `pods` after a new token.
"""

from collections.abc import Callable

from quarterdeck.api.meta import NODES, PODS, Key, Object
from quarterdeck.backoff import RestartBackoff
from quarterdeck.controller import DONE, Objects, Result
from quarterdeck.kube import AlreadyExists, Cache, Client, Conflict, KubeError, NotFound
from quarterdeck.localcluster.node.pod.lifecycle import FINISHED, Remove, is_deleted, plan
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
RETRY_SECONDS = 1.0
"""Seconds until the next attempt after a failed request."""
AFTER_CONFLICT = 0.05
"""Seconds until the next attempt after a conflict; the cache gets the newer object meanwhile."""


class Reports:
    """Reports the pods of this node to the API server."""

    def __init__(
        self,
        pods: Pods,
        cache: Cache[Object],
        client: Client,
        *,
        node: str,
        static: StaticPods,
        back_off: RestartBackoff,
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
        """Request the pod's tokens, write its status, and delete it if it has ended."""
        pod, stored = self._pods.pod_of(key), self._cache.get(key)
        if pod is None and stored is not None and is_mirror(stored):
            return Result(requeue_after=await self._delete(key, stored))
        run = self._pods.run_of(key, pod) if pod is not None else None
        if pod is None or run is None:
            return DONE
        if self._static.get(key) is not None:
            waits = [await self._mirror(key, pod, stored, run)]
        else:
            waits = [await self._refresh_tokens(key, pod, run), await self._write_status(pod, run)]
        decided = plan(run.observed(pod), self._back_off, self._clock())
        if Remove() in decided.actions:
            waits.append(await self._remove(key, pod, run))
        return Result(requeue_after=min((each for each in waits if each is not None), default=None))

    async def _mirror(
        self, key: Key, pod: Object, stored: Object | None, run: PodRun
    ) -> float | None:
        """Create or update the mirror pod of a static pod; the seconds until a retry."""
        status = pod_status(run.observed(pod), self._back_off, self._clock())
        self._static.set_status(key, status)
        try:
            if stored is None and not is_deleted(pod):
                node = await self._client.get(NODES, self._node)
                stored = await self._client.create(PODS, mirror_of(pod, node))
            if stored is None:
                return None
            if not mirrors(stored, pod):
                return await self._delete(key, stored)
            # Fields that the API server adds stay, such as the quality of service.
            await self._objects.set_status(stored, {**(stored.get("status") or {}), **status})
        except (AlreadyExists, Conflict, NotFound):
            return AFTER_CONFLICT
        except KubeError as error:
            log.v(4).info("static pod not mirrored", pod=str(key), error=str(error))
            return RETRY_SECONDS
        return None

    async def _refresh_tokens(self, key: Key, pod: Object, run: PodRun) -> float | None:
        """Request tokens that are missing or due; the seconds until the next renewal."""
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
        """Write the status if it differs; the seconds until a retry, None if it is written."""
        status = pod_status(run.observed(pod), self._back_off, self._clock())
        try:
            await self._objects.set_status(pod, status)
        except NotFound:
            return None
        except Conflict:
            return AFTER_CONFLICT
        except KubeError as error:
            log.warning("status not written", pod=run.uid, error=str(error))
            return RETRY_SECONDS
        return None

    async def _remove(self, key: Key, pod: Object, run: PodRun) -> float | None:
        """Remove the pod's files, then its object; the seconds until a retry."""
        run.remove_files()
        stored = self._cache.get(key)
        wait = await self._delete(key, stored) if stored is not None else None
        if self._static.get(key) is not None:
            self._static.removed(key)
            self._wake(key)
        return wait

    async def _delete(self, key: Key, stored: Object) -> float | None:
        """Delete the object; the seconds until a retry, None if it is deleted."""
        uid = stored["metadata"]["uid"]
        try:
            await self._client.delete(PODS, key.name, key.namespace, uid=uid, grace_seconds=0)
        except (NotFound, Conflict):
            return None
        except KubeError as error:
            log.warning("pod not removed", pod=str(key), error=str(error))
            return RETRY_SECONDS
        return None
