"""Watches ConfigMaps and Secrets by name, as long as a pod needs them.

A node may read only the objects that its pods refer to, one at a time. So each object has its own
watch, which all pods that need the object share.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from quarterdeck.api.meta import CONFIG_MAPS, SECRETS, Key, Object, Resource
from quarterdeck.controller.cache_tasks import run_cache
from quarterdeck.controller.tasks import guarded
from quarterdeck.kube import Cache, Client
from quarterdeck.localcluster.node.pod.environment import NotYetError, UnresolvedError

TROUBLE_AFTER = 5.0
"""Seconds before an error is reported: the API server allows the read a moment after it knows the
pod."""

KINDS: dict[str, Resource[Object]] = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}


class Name(NamedTuple):
    """The kind and key of an object."""

    kind: str
    key: Key


class _Followed:
    def __init__(self, cache: Cache[Object], task: "asyncio.Task[None]", since: float) -> None:
        self.cache = cache
        self.since = since
        self.task = task
        self.holders: set[Key] = set()


class NamedObjects:
    """The objects that pods refer to; `wake` is called for each pod when one changes."""

    def __init__(
        self, client: Client, tasks: asyncio.TaskGroup, wake: Callable[[Key], None]
    ) -> None:
        self._client = client
        self._tasks = tasks
        self._wake = wake
        self._clock = asyncio.get_running_loop().time
        self._followed: dict[Name, _Followed] = {}

    def hold(self, pod: Key, names: Iterable[Name]) -> None:
        """Watch exactly these objects for the pod; an empty set releases all."""
        wanted = set(names)
        for name in wanted - self._followed.keys():
            self._followed[name] = self._follow(name)
        for name, followed in list(self._followed.items()):
            if name in wanted:
                followed.holders.add(pod)
                continue
            followed.holders.discard(pod)
            if not followed.holders:
                followed.task.cancel()
                del self._followed[name]

    def get(self, name: Name) -> Object | None:
        """The object; None if it does not exist; `UnresolvedError` before the first list."""
        followed = self._followed[name]
        cache = followed.cache
        if not cache.synced:
            if cache.trouble and self._clock() - followed.since > TROUBLE_AFTER:
                raise UnresolvedError(name.kind, name.key.name, cache.trouble)
            raise NotYetError(name.kind, name.key.name, "waiting for the API server")
        return cache.get(name.key)

    def _follow(self, name: Name) -> _Followed:
        cache = Cache(
            self._client, KINDS[name.kind], namespace=name.key.namespace, name=name.key.name
        )
        task = run_cache(self._tasks, cache, f"cache of {name.kind} {name.key}")
        followed = _Followed(cache, task, self._clock())

        def woken(_change: object = None) -> None:
            for holder in followed.holders:
                self._wake(holder)

        cache.subscribe(woken)
        # No change event tells that the object does not exist, so the sync wakes the pods too.
        sync = f"sync {name.kind} {name.key}"
        synced = self._tasks.create_task(guarded(sync, cache.wait_synced()), name=sync)
        synced.add_done_callback(woken)
        task.add_done_callback(lambda _: synced.cancel())
        return followed
