"""The payload engine's view of the API server: kinds, caches of objects, writes.

The payload's objects are in the caches of `AnyKind`. Added to them is what only a payload needs:
the autoscalers of its workloads, and the operator's own account and rights.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType

from quarterdeck.api.meta import CRDS, Key, Object, Resource, foreign
from quarterdeck.controller.any_kind import AnyKind, FollowedKind
from quarterdeck.kube import Cache, Change, Client, KubeError
from quarterdeck.kube.kinds import GroupVersionKind
from quarterdeck.log import get_logger
from quarterdeck.operators.cluster_version.sync.autoscaled import AUTOSCALERS, has_replicas, target
from quarterdeck.operators.cluster_version.sync.own_rights import BINDINGS, RBAC, OwnAccount
from quarterdeck.operators.cluster_version.sync.plan import FIELD_MANAGER
from quarterdeck.operators.cluster_version.sync.pod_template import has_pod_template
from quarterdeck.operators.cluster_version.sync.standstill import STANDSTILL_TIMEOUT
from quarterdeck.payload.model import Manifest, ObjectIdentity

log = get_logger("cluster-version.sync")

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
        self._any = AnyKind(
            client,
            FIELD_MANAGER,
            on_change=self._notify,
            keep_all_managed_fields=_keeps_all_managed_fields,
            clock=clock,
        )
        self._listener: Listener | None = None
        self._account: OwnAccount | None = None
        self.rights_lock = asyncio.Lock()
        """Held during a write that can remove the operator's own rights."""
        self._autoscalers: Cache[Object] | None = None

    async def __aenter__(self) -> "Cluster":
        await self._any.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._any.__aexit__(kind, error, traceback)

    @contextmanager
    def following(self, manifests: Iterable[Manifest], listener: Listener) -> Iterator[None]:
        """Call the listener at each change of an object of these manifests, inside the context."""
        if self._listener is not None:
            raise RuntimeError("two payloads cannot be run on one Cluster at the same time")
        self._any.want(_keys_by_kind(manifests))
        self._listener = listener
        try:
            yield
        finally:
            self._listener = None

    def versions(self, gvk: GroupVersionKind) -> list[str]:
        """The versions in which the kind is served, as of the last discovery."""
        return self._any.kinds.versions(gvk)

    def followed(self, manifest: Manifest) -> FollowedKind | None:
        """The objects of the manifest's kind; None if their cache is not synced."""
        found = self._any.followed(GroupVersionKind.of(manifest.object))
        return None if found is None or self._lacks_autoscalers(manifest) else found

    async def follow(self, manifest: Manifest) -> FollowedKind | None:
        """The objects of the manifest's kind, listed if need be; None if the kind is not served."""
        found = await self._any.follow(GroupVersionKind.of(manifest.object))
        if found is not None and self._lacks_autoscalers(manifest):
            await self._any.listed(self._follow_autoscalers())
        return found

    async def follow_served(self, manifests: Iterable[Manifest]) -> None:
        """Start to watch all objects whose kinds are served, before the first writes.

        A step that needs objects which cannot be read reports that when it has its turn.
        """
        try:
            await self._any.follow_served()
        except KubeError as error:
            log.v(4).info("kinds not discovered beforehand", error=str(error))
            return
        if any(self._lacks_autoscalers(manifest) for manifest in manifests):
            self._follow_autoscalers()

    def is_autoscaled(self, identity: ObjectIdentity) -> bool:
        """Whether an autoscaler scales this object."""
        cache = self._autoscalers
        return cache is not None and bool(cache.by_index("target", str(identity)))

    async def account(self) -> OwnAccount:
        """The operator's own user; requested once."""
        if self._account is None:
            kind = {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind}
            answer = await self._client.create(_REVIEWS, {**kind, "metadata": {}})
            user = answer["status"]["userInfo"]
            self._account = OwnAccount(
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
        self._any.kinds.learn(definition)

    def _lacks_autoscalers(self, manifest: Manifest) -> bool:
        """Whether the manifest sets replicas and the autoscalers are not listed yet."""
        if not has_replicas(manifest.object) or self._any.kinds.get(_AUTOSCALERS) is None:
            return False
        return self._autoscalers is None or not self._autoscalers.synced

    def _follow_autoscalers(self) -> Cache[Object]:
        if self._autoscalers is not None:
            return self._autoscalers
        cache: Cache[Object] = Cache(
            self._client, AUTOSCALERS, indexes={"target": lambda one: [str(target(one))]}
        )
        cache.subscribe(self._autoscaler_changed)
        self._any.run_beside(cache, f"payload's {AUTOSCALERS.plural}")
        self._autoscalers = cache
        return cache

    def _autoscaler_changed(self, change: Change[Object]) -> None:
        if self._listener is not None:
            for one in {target(it) for it in (change.old, change.new) if it is not None}:
                self._listener(one)

    def _notify(self, gvk: GroupVersionKind, key: Key) -> None:
        if self._listener is not None:
            self._listener(ObjectIdentity(gvk.group, gvk.kind, key.namespace, key.name))


def _keeps_all_managed_fields(resource: Resource[Object]) -> bool:
    """Whether other managers' entries decide.

    They decide whether we may write a definition, and which fields of a pod template are removed.
    """
    return resource.plural == CRDS.plural or has_pod_template(resource.group, resource.kind)


def _keys_by_kind(manifests: Iterable[Manifest]) -> dict[GroupVersionKind, set[Key]]:
    wanted: dict[GroupVersionKind, set[Key]] = {}
    for manifest in manifests:
        keys = wanted.setdefault(GroupVersionKind.of(manifest.object), set())
        keys.add(Key(manifest.identity.namespace, manifest.identity.name))
    return wanted
