"""The payload engine's view of the API server: kinds, caches of objects, writes.

There is one watch for each kind in the payload, and its cache holds only the payload's objects. If
a kind has a single object, or all of them in one namespace, the watch selects only that. So a pass
over a settled payload makes no request, and a change wakes the engine at once.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType

from quarterdeck.api.meta import CRDS, Key, Object, Resource, foreign
from quarterdeck.controller import Objects
from quarterdeck.controller.cache_tasks import run_cache
from quarterdeck.kube import Cache, Change, Client, KubeError
from quarterdeck.log import get_logger
from quarterdeck.operators.cluster_version.sync.autoscaled import AUTOSCALERS, has_replicas, target
from quarterdeck.operators.cluster_version.sync.kinds import (
    GroupVersionKind,
    Kinds,
    discover,
    kinds_of_definition,
)
from quarterdeck.operators.cluster_version.sync.own_rights import BINDINGS, RBAC, Account
from quarterdeck.operators.cluster_version.sync.plan import FIELD_MANAGER
from quarterdeck.operators.cluster_version.sync.pod_template import has_pod_template
from quarterdeck.operators.cluster_version.sync.standstill import STANDSTILL_TIMEOUT
from quarterdeck.payload.model import Manifest, ObjectIdentity

log = get_logger("cluster-version.sync")

DISCOVERY_INTERVAL = 2.0
"""Seconds between two discovery requests, while a kind is missing."""
FIRST_LIST_TIMEOUT = 10.0
"""Seconds that the first list of a kind may take before it counts as unreadable."""

Listener = Callable[[ObjectIdentity], None]
Announce = Callable[[Object, str, str], None]
"""Creates an event about an object: the object, a reason, a note."""

_REVIEWS = foreign(
    "authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False
)
_BINDINGS = tuple(
    foreign(f"{RBAC}/v1", kind, f"{kind.lower()}s", namespaced=kind == "RoleBinding")
    for kind in BINDINGS
)
_CLUSTER_ROLES = foreign(f"{RBAC}/v1", "ClusterRole", "clusterroles", namespaced=False)
_AUTOSCALERS = GroupVersionKind(AUTOSCALERS.group, AUTOSCALERS.version, AUTOSCALERS.kind)


class CannotRead(KubeError):  # noqa: N818 - as the errors beside it
    """Objects of a kind could not be listed; the message gives the reason."""


class Followed:
    """The payload's objects of one kind, in a cache."""

    def __init__(self, client: Client, resource: Resource[Object], keys: frozenset[Key]) -> None:
        self.resource = resource
        self.keys = keys
        namespaces = {key.namespace for key in keys}
        self.cache: Cache[Object] = Cache(
            client,
            resource,
            namespace=namespaces.pop() if len(namespaces) == 1 else "",
            name=next(iter(keys)).name if len(keys) == 1 else "",
            own_manager=FIELD_MANAGER,
            # Other managers' entries decide whether we may write a definition, and which fields of
            # a pod template are removed.
            keep_all_managed_fields=resource.plural == CRDS.plural
            or has_pod_template(resource.group, resource.kind),
            wanted=keys.__contains__,
        )
        self.objects = Objects(resource, self.cache, client, FIELD_MANAGER)
        self.task: asyncio.Task[None] | None = None


class Cluster:
    """Watches the objects of a payload while its context is open."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Callable[[], float] = time.monotonic,
        timeout: float = STANDSTILL_TIMEOUT,
        announce: Announce = lambda about, reason, note: None,
    ) -> None:
        """`client` is the leader's client."""
        self.announce = announce
        self.now = client.now
        """The API server's time of day, with which an operator's report is compared."""
        self.clock = clock
        self.timeout = timeout
        """Seconds for which a roll-out may make no progress."""
        self._client = client
        self._kinds: Kinds = {}
        self._asked: float | None = None
        self._asking = asyncio.Lock()
        self._wanted: dict[GroupVersionKind, set[Key]] = {}
        self._followed: dict[GroupVersionKind, Followed] = {}
        self._listener: Listener | None = None
        self._tasks = asyncio.TaskGroup()
        self._account: Account | None = None
        self.rights_lock = asyncio.Lock()
        """Held during a write that can remove the operator's own rights."""
        self._autoscalers: Cache[Object] | None = None
        self._autoscaling: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Cluster":
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for gvk in list(self._followed):
            self._stop(gvk)
        if self._autoscaling is not None:
            self._autoscaling.cancel()
        try:
            await self._tasks.__aexit__(kind, error, traceback)
        except BaseExceptionGroup as group:
            # An exception raised inside the context is raised again without the group.
            if group.exceptions != (error,):
                raise

    @contextmanager
    def following(self, manifests: Iterable[Manifest], listener: Listener) -> Iterator[None]:
        """Call the listener at each change of an object of these manifests, inside the context."""
        if self._listener is not None:
            raise RuntimeError("two payloads cannot be run on one Cluster at the same time")
        self._want(manifests)
        self._listener = listener
        try:
            yield
        finally:
            self._listener = None

    def versions(self, gvk: GroupVersionKind) -> list[str]:
        """The versions in which the kind is served, as of the last discovery."""
        same = (gvk.group, gvk.kind)
        return sorted(known.version for known in self._kinds if (known.group, known.kind) == same)

    def followed(self, manifest: Manifest) -> Followed | None:
        """The objects of the manifest's kind; None if their cache is not synced."""
        found = self._followed.get(GroupVersionKind.of(manifest.object))
        if found is None or not found.cache.synced or self._lacks_autoscalers(manifest):
            return None
        return found

    async def follow(self, manifest: Manifest) -> Followed | None:
        """The objects of the manifest's kind, listed if need be; None if the kind is not served."""
        gvk = GroupVersionKind.of(manifest.object)
        if gvk not in self._kinds:
            await self._discover(gvk)
        resource = self._kinds.get(gvk)
        if resource is None:
            return None
        found = self._followed.get(gvk) or self._start(gvk, resource)
        await self._listed(found.cache)
        if self._lacks_autoscalers(manifest):
            await self._listed(self._follow_autoscalers())
        return found

    def is_autoscaled(self, identity: ObjectIdentity) -> bool:
        """Whether an autoscaler scales this object."""
        cache = self._autoscalers
        return cache is not None and bool(cache.by_index("target", str(identity)))

    async def create(self, followed: Followed, desired: Object) -> Object:
        """Create the object, and return it; `AlreadyExists` if it exists."""
        return await followed.objects.create(desired)

    async def take_over(self, followed: Followed, live: Object, entries: list[Object]) -> None:
        """Write the managedFields of an object, unless it has changed since."""
        meta = live["metadata"]
        operations = [
            {"op": "replace", "path": "/metadata/managedFields", "value": entries},
            {
                "op": "replace",
                "path": "/metadata/resourceVersion",
                "value": meta["resourceVersion"],
            },
        ]
        await self._client.patch(
            followed.resource, meta["name"], operations, meta.get("namespace", ""), type="json"
        )

    async def account(self) -> Account:
        """The operator's own user; requested once."""
        if self._account is None:
            kind = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind}
            answer = await self._client.create(_REVIEWS, {**kind, "metadata": {}})
            user = answer["status"]["userInfo"]
            self._account = Account(
                name=user["username"], groups=frozenset(user.get("groups") or ())
            )
        return self._account

    async def rights(self) -> tuple[list[Object], list[Object]]:
        """All bindings, and all aggregated ClusterRoles; listed at each call."""
        bindings = [
            one for resource in _BINDINGS for one in (await self._client.list(resource)).items
        ]
        roles = (await self._client.list(_CLUSTER_ROLES)).items
        return bindings, [one for one in roles if one.get("aggregationRule")]

    def learn(self, definition: Object) -> None:
        """Add the kinds of an established definition, before discovery lists them."""
        self._kinds |= kinds_of_definition(definition)

    async def _listed(self, cache: Cache[Object]) -> None:
        """Wait for the first list; `CannotRead` if it does not come in time."""
        deadline = self.clock() + FIRST_LIST_TIMEOUT
        while not cache.synced:
            if cache.trouble or self.clock() > deadline:
                raise CannotRead(cache.trouble or f"no list of {cache.resource.plural} in time")
            await asyncio.sleep(0.02)

    def _lacks_autoscalers(self, manifest: Manifest) -> bool:
        """Whether the manifest sets replicas and the autoscalers are not listed yet."""
        if not has_replicas(manifest.object) or _AUTOSCALERS not in self._kinds:
            return False
        return self._autoscalers is None or not self._autoscalers.synced

    def _follow_autoscalers(self) -> Cache[Object]:
        if self._autoscalers is not None:
            return self._autoscalers
        cache: Cache[Object] = Cache(
            self._client, AUTOSCALERS, indexes={"target": lambda one: [str(target(one))]}
        )
        cache.subscribe(self._autoscaler_changed)
        name = f"payload's {AUTOSCALERS.plural}"
        self._autoscaling = run_cache(self._tasks, cache, name)
        self._autoscalers = cache
        return cache

    def _autoscaler_changed(self, change: Change[Object]) -> None:
        if self._listener is not None:
            for one in {target(it) for it in (change.old, change.new) if it is not None}:
                self._listener(one)

    async def _discover(self, missing: GroupVersionKind) -> None:
        async with self._asking:
            now = self.clock()
            if missing in self._kinds or (
                self._asked is not None and now - self._asked < DISCOVERY_INTERVAL
            ):
                return
            self._kinds |= await discover(self._client)
            self._asked = now
            log.v(4).info("kinds discovered", kinds=len(self._kinds))

    def _want(self, manifests: Iterable[Manifest]) -> None:
        """Stop the caches that do not match these manifests; `follow` starts the others."""
        wanted: dict[GroupVersionKind, set[Key]] = {}
        for manifest in manifests:
            keys = wanted.setdefault(GroupVersionKind.of(manifest.object), set())
            keys.add(Key(manifest.identity.namespace, manifest.identity.name))
        self._wanted = wanted
        for gvk, followed in list(self._followed.items()):
            if _keys(wanted.get(gvk, set()), followed.resource) != followed.keys:
                self._stop(gvk)

    def _start(self, gvk: GroupVersionKind, resource: Resource[Object]) -> Followed:
        followed = Followed(self._client, resource, _keys(self._wanted[gvk], resource))
        followed.cache.subscribe(lambda change: self._notify(gvk, change.key))
        followed.task = run_cache(self._tasks, followed.cache, f"payload's {resource.plural}")
        self._followed[gvk] = followed
        return followed

    def _stop(self, gvk: GroupVersionKind) -> None:
        followed = self._followed.pop(gvk)
        if followed.task is not None:
            followed.task.cancel()

    def _notify(self, gvk: GroupVersionKind, key: Key) -> None:
        if self._listener is not None:
            self._listener(ObjectIdentity(gvk.group, gvk.kind, key.namespace, key.name))


def _keys(keys: Iterable[Key], resource: Resource[Object]) -> frozenset[Key]:
    if resource.namespaced:
        return frozenset(keys)
    return frozenset(Key("", key.name) for key in keys)
