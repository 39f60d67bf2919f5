"""Looks at one manifest and does what is to be done about it.

What that is comes from `plan`, and whether the object is ready from `readiness`, `patience` and
`operator_health`; here are the requests, and what their errors mean. `look` needs no request, and
on a settled cluster it is all that happens.
"""

from collections.abc import Sequence

from quarterdeck.api.meta import Key, Object
from quarterdeck.controller import LeadershipLost
from quarterdeck.kube import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
)
from quarterdeck.log import get_logger
from quarterdeck.operators.cluster_version.payload import annotations as known
from quarterdeck.operators.cluster_version.payload.graph import Mode
from quarterdeck.operators.cluster_version.payload.model import Identity, Manifest
from quarterdeck.operators.cluster_version.sync.cluster import CannotRead, Cluster, Followed
from quarterdeck.operators.cluster_version.sync.desired import desired_object, expected_versions
from quarterdeck.operators.cluster_version.sync.kinds import GroupVersionKind
from quarterdeck.operators.cluster_version.sync.lacking import (
    Coming,
    without_kind,
    without_place,
)
from quarterdeck.operators.cluster_version.sync.operator_health import operator_health
from quarterdeck.operators.cluster_version.sync.outcome import DONE, Done, Failed, Outcome, Waiting
from quarterdeck.operators.cluster_version.sync.patience import (
    Standstill,
    judge_wait,
    patience_with,
)
from quarterdeck.operators.cluster_version.sync.plan import (
    Delete,
    Leave,
    Plan,
    Write,
    is_definition,
    is_job,
    plan,
)
from quarterdeck.operators.cluster_version.sync.readiness import READINESS

log = get_logger("cluster-version.sync")

_OPERATOR = ("config.openshift.io", "ClusterOperator")
_WAITED_FOR = frozenset({*READINESS, _OPERATOR})
_ROUNDS = 4
"""How often in a row one manifest is acted upon: delete, create, settle, and one to spare."""


class _Item:
    """A manifest, with what was found out about it."""

    __slots__ = (
        "desired",
        "done",
        "expected",
        "followed",
        "identity",
        "idle",
        "key",
        "manifest",
        "settled",
        "standstill",
        "twin",
        "wrote",
    )

    def __init__(self, manifest: Manifest, mode: Mode) -> None:
        self.manifest = manifest
        self.idle = _is_idle(manifest, mode)
        self.followed: Followed | None = None
        self.twin = ""
        """Where the same object stands with other content; of the two only that one counts."""
        self.wrote = False
        self.identity = manifest.identity
        self.expected = expected_versions(manifest)
        self.key = Key(self.identity.namespace, self.identity.name)
        self.desired: Object | None = None
        self.settled: object = None
        """The form in which the object was found to be as desired."""
        self.standstill: Standstill | None = None
        self.done: Object | None = None
        """The object in the cache that was found done; a changed one is another."""


class Applier:
    """Applies the manifests of one run; they are named by their place in it."""

    def __init__(self, manifests: Sequence[Manifest], mode: Mode, cluster: Cluster) -> None:
        self._items = [_Item(manifest, mode) for manifest in manifests]
        _mark_twins(self._items)
        self._mode = mode
        self._cluster = cluster
        # While updating, what comes later is held back by what is before it, and so never comes.
        self._coming = Coming(manifests if mode is not Mode.UPDATING else ())

    def look(self, step: int) -> Outcome | None:
        """What comes of the manifest without a request; None if one is needed."""
        item = self._items[step]
        if item.idle:
            return DONE
        if item.twin:
            message = f"the same object stands in {item.twin} with other content; keep one"
            return Failed("DuplicateManifest", message)
        if item.followed is None:
            item.followed = self._cluster.followed(item.manifest)
            if item.followed is None:
                return None
        found = self._judge(item, item.followed)
        return None if isinstance(found, Write | Delete) else found

    def is_settled(self, step: int) -> bool:
        """Whether another look would find what the last one did: done, and nothing changed."""
        item = self._items[step]
        if item.done is None or item.followed is None:
            return item.idle
        return item.followed.cache.get(item.key) is item.done

    async def attempt(self, step: int) -> tuple[Outcome, bool]:
        """What comes of the manifest after everything that can be done, and whether it wrote."""
        item = self._items[step]
        item.wrote = False
        return await self._outcome(item), item.wrote

    async def _outcome(self, item: _Item) -> Outcome:
        try:
            return await self._attempt(item)
        except LeadershipLost:
            raise
        except Conflict as error:
            # Somebody was faster; their change is on its way to us.
            return Waiting("ObjectChanging", error.message)
        except NotFound as error:
            return without_place(item.key, error, self._coming)
        except KubeError as error:
            return _failure(item, error)
        except Exception as error:
            log.exception("manifest failed unexpectedly", manifest=item.manifest.place)
            return Failed("InternalError", f"{type(error).__name__}: {error}; please report it")

    async def _attempt(self, item: _Item) -> Outcome:
        followed = await self._cluster.follow(item.manifest)
        if followed is None:
            gvk = GroupVersionKind.of(item.manifest.object)
            return without_kind(item.manifest, self._cluster.versions(gvk), self._coming)
        if followed.resource.namespaced and not item.key.namespace:
            message = f"a {item.identity.kind} is in a namespace; set metadata.namespace"
            return Failed("NamespaceMissing", message)
        for _ in range(_ROUNDS):
            match self._judge(item, followed):
                case Write(changed):
                    await self._write(item, followed, changed)
                case Delete(why):
                    await self._delete(item, followed, why)
                case outcome:
                    return outcome
        return Waiting("ObjectChanging", "it does not come to rest; is somebody changing it back?")

    def _judge(self, item: _Item, followed: Followed) -> Write | Delete | Outcome:
        if item.desired is None:
            namespaced = followed.resource.namespaced
            item.desired = desired_object(item.manifest, namespaced=namespaced)
            item.key = Key(item.key.namespace if namespaced else "", item.key.name)
        live = followed.cache.get(item.key)
        found = self._plan(item, item.desired, live)
        if isinstance(found, Leave):
            assert live is not None  # noqa: S101 - nothing that is not there is left as it is
            found = self._readiness(item, live)
        item.done = live if isinstance(found, Done) else None
        return found

    def _plan(self, item: _Item, desired: Object, live: Object | None) -> Plan:
        """What to do; the object is compared only in a form that it did not have before."""
        form = _form(item.identity, live) if live is not None else None
        if form is not None and form == item.settled:
            return Leave()
        found = plan(item.manifest, desired, live, self._mode)
        item.settled = form if isinstance(found, Leave) else None
        return found

    def _readiness(self, item: _Item, live: Object) -> Outcome:
        what = (item.identity.group, item.identity.kind)
        if what == _OPERATOR:
            return operator_health(live, item.expected, self._mode, self._cluster.wall())
        rule = READINESS.get(what)
        if rule is None:
            return DONE
        outcome = rule(live)
        if isinstance(outcome, Done) and is_definition(item.identity):
            self._cluster.learn(live)
        patience = patience_with(item.identity, live, self._mode, self._cluster.patience)
        outcome, item.standstill = judge_wait(
            outcome, item.standstill, patience, self._cluster.clock()
        )
        return outcome

    async def _write(self, item: _Item, followed: Followed, changed: tuple[str, ...]) -> None:
        assert item.desired is not None  # noqa: S101 - it was compared
        if not changed:
            await self._cluster.create(followed, item.desired)
            self._say("created", item)
            return
        live = await followed.objects.ensure(item.desired)
        # As the server answered; the cache may know of more by now, which is to be compared.
        item.settled = _form(item.identity, live)
        self._say("applied", item, changed=changed[:5])

    async def _delete(self, item: _Item, followed: Followed, why: str) -> None:
        live = followed.cache.get(item.key)
        if live is not None:
            # A Job goes when its pods have gone, so that two never run at once.
            await followed.objects.delete(
                live, propagation="Foreground" if is_job(item.identity) else "Background"
            )
            self._say("deleted", item, why=why)

    def _say(self, what: str, item: _Item, **facts: object) -> None:
        item.wrote = True
        item.standstill = None
        log.info(what, object=str(item.identity), manifest=item.manifest.place, **facts)


def _mark_twins(items: Sequence[_Item]) -> None:
    """Mark manifests of one object that differ: each would undo what the other one did."""
    first: dict[Identity, Manifest] = {}
    for item in items:
        if item.idle:
            continue
        before = first.setdefault(item.identity, item.manifest)
        if before.object != item.manifest.object:
            item.twin = before.place


def _is_idle(manifest: Manifest, mode: Mode) -> bool:
    """Whether there is nothing to be done in this mode, whatever the cluster has."""
    if mode is Mode.UPDATING:
        return False
    return manifest.annotations.get(known.DELETE) == "true" or (
        mode is Mode.RECONCILING and is_job(manifest.identity)
    )


def _form(identity: Identity, live: Object) -> object:
    """What is the same as long as nothing changes that a manifest can say.

    Kinds that are waited for change their status often, and count the changes of the rest.
    """
    meta = live["metadata"]
    if (identity.group, identity.kind) not in _WAITED_FOR:
        return meta["uid"], meta["resourceVersion"]
    said = ("uid", "generation", "labels", "annotations", "ownerReferences", "deletionTimestamp")
    return [meta.get(field) for field in said]


def _failure(item: _Item, error: KubeError) -> Failed:
    match error:
        case CannotRead():
            return Failed("CannotRead", str(error))
        case Forbidden():
            return Failed("Forbidden", f"{error.message}; allow it in the operator's role")
        case Invalid():
            return Failed("Invalid", f"{error.message}; correct {item.manifest.place}")
        case ApiError():
            return Failed(error.reason or "ServerError", str(error))
        case _:
            return Failed("ServerUnavailable", str(error))
