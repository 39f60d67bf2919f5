"""Watches ConfigMaps and Secrets by name, as long as a pod needs them.

A node may read only the objects that its pods refer to, one at a time. So each object has its own
watch, which all pods that need the object share.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from quarterdeck.api.meta import CONFIG_MAPS, SECRETS, Key, Object, Resource
from quarterdeck.controller import NamedObjects
from quarterdeck.controller.tasks import endless
from quarterdeck.kube import Client
from quarterdeck.localcluster.node.pod.environment import NotYetError, UnresolvedError

TROUBLE_AFTER = 5.0
"""Seconds before an error is reported: the API server allows the read a moment after it knows the
pod."""

KINDS: dict[str, Resource[Object]] = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}


class Name(NamedTuple):
    """The kind and key of an object."""

    kind: str
    key: Key


class PodReferences:
    """The objects that pods refer to; `wake` is called for each pod when one changes."""

    def __init__(
        self, client: Client, tasks: asyncio.TaskGroup, wake: Callable[[Key], None]
    ) -> None:
        self._clock = asyncio.get_running_loop().time
        self._named = {
            kind: NamedObjects(client, resource, wake) for kind, resource in KINDS.items()
        }
        self._unknown_since: dict[Name, float] = {}
        for kind, named in self._named.items():
            name = f"{kind}s of pods"
            tasks.create_task(endless(name, named.run()), name=name)

    def watch(self, pod: Key, names: Iterable[Name]) -> None:
        """Watch exactly these objects for the pod; without names, none."""
        wanted = set(names)
        for kind, named in self._named.items():
            unknown = named.watch(pod, (name.key for name in wanted if name.kind == kind))
            for key in unknown:
                self._unknown_since.setdefault(Name(kind, key), self._clock())
        for name in [*self._unknown_since]:
            if name.key not in self._named[name.kind].watched:
                del self._unknown_since[name]

    def get(self, name: Name) -> Object | None:
        """The object; None if it does not exist; `UnresolvedError` before the first list."""
        named = self._named[name.kind]
        if named.is_known(name.key):
            self._unknown_since.pop(name, None)
            return named.get(name.key)
        trouble = named.trouble(name.key)
        since = self._unknown_since.setdefault(name, self._clock())
        if trouble and self._clock() - since > TROUBLE_AFTER:
            raise UnresolvedError(name.kind, name.key.name, trouble)
        raise NotYetError(name.kind, name.key.name, "waiting for the API server")
