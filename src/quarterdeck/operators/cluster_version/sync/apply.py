"""Carries out the plan for one manifest.

`plan` decides what to do; `status.rollout`, `standstill` and `operator_health` decide whether the
object is ready. This module makes the requests, and turns their errors into outcomes. `look` needs
no request, and is all that happens on a settled cluster.
"""

from collections.abc import Sequence

from quarterdeck.api.meta import Key, Object
from quarterdeck.controller import LeadershipLost
from quarterdeck.controller.any_kind import CannotRead, FollowedKind
from quarterdeck.controller.metadata import key_of
from quarterdeck.kube import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
)
from quarterdeck.kube.kinds import GroupVersionKind
from quarterdeck.log import get_logger
from quarterdeck.operators.cluster_version.sync.autoscaled import has_replicas, without_replicas
from quarterdeck.operators.cluster_version.sync.cluster import Cluster
from quarterdeck.operators.cluster_version.sync.desired import desired_object, related_objects
from quarterdeck.operators.cluster_version.sync.item import Item, is_operator, mark_duplicates
from quarterdeck.operators.cluster_version.sync.lacking import (
    Provided,
    without_kind,
    without_place,
)
from quarterdeck.operators.cluster_version.sync.operator_health import operator_health
from quarterdeck.operators.cluster_version.sync.own_rights import (
    can_take_rights,
    refusal,
    stop,
)
from quarterdeck.operators.cluster_version.sync.plan import (
    FIELD_MANAGER,
    Apply,
    Delete,
    Leave,
    Plan,
    is_definition,
    is_job,
    plan,
)
from quarterdeck.operators.cluster_version.sync.pod_template import (
    NOBODY,
    as_ours,
    describe_owners,
    replaced_fields,
)
from quarterdeck.operators.cluster_version.sync.progress import DONE, Done, Failed, Outcome, Waiting
from quarterdeck.operators.cluster_version.sync.standstill import judge_wait, timeout_for
from quarterdeck.payload import annotations as known
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import Manifest
from quarterdeck.payload.own_needs import can_stop_operator
from quarterdeck.status.rollout import READINESS

log = get_logger("cluster-version.sync")

_MAX_ROUNDS = 4
"""The most writes in a row for one manifest: delete, create, settle, and one to spare."""


class Applier:
    """Applies the manifests of one run; a step is the index of a manifest."""

    def __init__(self, manifests: Sequence[Manifest], mode: Mode, cluster: Cluster) -> None:
        self._items = [Item(manifest, mode) for manifest in manifests]
        mark_duplicates(self._items)
        self._mode = mode
        self._cluster = cluster
        # While updating, a later manifest waits for the earlier ones, so it cannot help them.
        self._provided = Provided(manifests if mode is not Mode.UPDATING else ())

    def look(self, step: int) -> Outcome | None:
        """The outcome without a request; None if a request is needed."""
        item = self._items[step]
        if item.idle:
            return DONE
        if item.duplicate_of:
            message = f"the same object stands in {item.duplicate_of} with other content; keep one"
            return Failed("DuplicateManifest", message)
        if item.followed is None:
            item.followed = self._cluster.followed(item.manifest)
            if item.followed is None:
                return None
        found = self._judge(item, item.followed)
        return None if isinstance(found, Apply | Delete) else found

    def is_settled(self, step: int) -> bool:
        """Whether the step is done and its object unchanged since."""
        item = self._items[step]
        if item.done is None or item.followed is None:
            return item.idle
        return item.followed.cache.get(item.key) is item.done

    async def attempt(self, step: int) -> tuple[Outcome, bool]:
        """Do all that can be done now; return the outcome, and whether a write was made."""
        item = self._items[step]
        item.wrote = False
        return await self._outcome(item), item.wrote

    def operators(self) -> list[int]:
        """The steps whose ClusterOperators are created before their turn."""
        return [
            step
            for step, item in enumerate(self._items)
            if is_operator(item.identity)
            and not (item.idle or item.duplicate_of or known.DELETE in item.manifest.annotations)
        ]

    async def create_beforehand(self, step: int) -> bool:
        """Create the ClusterOperator if it is missing, so that it is visible; True if it exists.

        An error is reported only when the step has its turn.
        """
        item = self._items[step]
        try:
            followed = await self._cluster.follow(item.manifest)
            if followed is None:
                return False
            desired = desired_object(item.manifest, namespaced=followed.resource.namespaced)
            await self._create(item, followed, desired)
        except LeadershipLost:
            raise
        except KubeError as error:
            log.v(4).info("not made beforehand", object=str(item.identity), error=str(error))
            return isinstance(error, AlreadyExists)
        return True

    async def _outcome(self, item: Item) -> Outcome:
        try:
            return await self._attempt(item)
        except LeadershipLost:
            raise
        except Conflict as error:
            # Somebody else has written; the watch delivers the change.
            return Waiting("ObjectChanging", error.message)
        except NotFound as error:
            return without_place(item.key, error, self._provided)
        except KubeError as error:
            return _failure(item, error)
        except Exception as error:
            log.exception("manifest failed unexpectedly", manifest=item.manifest.place)
            return Failed("InternalError", f"{type(error).__name__}: {error}; please report it")

    async def _attempt(self, item: Item) -> Outcome:
        followed = await self._cluster.follow(item.manifest)
        if followed is None:
            gvk = GroupVersionKind.of(item.manifest.object)
            return without_kind(item.manifest, self._cluster.versions(gvk), self._provided)
        if followed.resource.namespaced and not item.key.namespace:
            message = f"a {item.identity.kind} is in a namespace; set metadata.namespace"
            return Failed("NamespaceMissing", message)
        for _ in range(_MAX_ROUNDS):
            match self._judge(item, followed):
                case Apply() | Delete() as todo:
                    if refused := await self._carry_out(item, followed, todo):
                        return refused
                case outcome:
                    return outcome
        return Waiting("ObjectChanging", "it does not come to rest; is somebody changing it back?")

    def _judge(self, item: Item, followed: FollowedKind) -> Apply | Delete | Outcome:
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

    def _plan(self, item: Item, desired: Object, live: Object | None) -> Plan:
        """The plan; an object in a form that was settled before is not compared again."""
        item.wanted = desired
        if live is None:
            item.settled = None
            return plan(item.manifest, desired, None, self._mode)
        item.autoscaled = has_replicas(desired) and self._cluster.is_autoscaled(item.identity)
        form = item.form(live)
        if form == item.settled:
            return Leave()
        if item.autoscaled:
            item.wanted = without_replicas(desired, live, FIELD_MANAGER)
        found = plan(item.manifest, item.wanted, live, self._mode)
        item.settled = form if isinstance(found, Leave) else None
        return found

    def _readiness(self, item: Item, live: Object) -> Outcome:
        if is_operator(item.identity):
            now = self._cluster.now()
            if self._mode is not Mode.RECONCILING:
                item.since = item.since or now
            return operator_health(live, item.expected, self._mode, now, item.since)
        rule = READINESS.get((item.identity.group, item.identity.kind))
        if rule is None:
            return DONE
        outcome = rule(live)
        if isinstance(outcome, Done) and is_definition(item.identity):
            self._cluster.learn(live)
        timeout = timeout_for(item.identity, live, self._mode, self._cluster.timeout)
        outcome, item.standstill = judge_wait(
            outcome, item.standstill, timeout, self._cluster.clock()
        )
        return outcome

    async def _write(self, item: Item, followed: FollowedKind, todo: Apply) -> None:
        wanted, before = item.wanted, followed.cache.get(item.key)
        assert wanted is not None  # noqa: S101 - it was compared
        if before is None or not todo.changed:
            await self._create(item, followed, wanted)
            return
        others = _set_by_others(item, before, wanted, todo)
        if todo.foreign:
            entries = as_ours(item.identity, before, FIELD_MANAGER)
            await followed.objects.take_over(before, entries)
        uid = before["metadata"]["uid"]
        # After a conflict with the apply, the fields are ours already and have no other manager.
        if others and not (item.announced == uid and set(others) == {NOBODY}):
            item.announced = uid
            note = (
                f"The pod template is as in the release again, without {describe_owners(others)}."
            )
            self._cluster.announce(before, "ForeignFieldsRemoved", note)
        live = await followed.objects.ensure(wanted)
        item.announced = ""
        # The form in the server's answer: the cache may hold a later one, still to be compared.
        item.settled = item.form(live)
        self._record_write("applied", item, changed=todo.changed[:5])

    async def _create(self, item: Item, followed: FollowedKind, wanted: Object) -> None:
        async with item.creating:
            # The cache has what the server answered to a write that ended just now.
            made = followed.cache.get(key_of(wanted))
            if made is None:
                made = await followed.objects.create(wanted)
                self._record_write("created", item)
            elif not _is_left_bare(item, made):
                return
            if related := related_objects(item.manifest) if is_operator(item.identity) else []:
                # Its operator adds more; until it runs, people find its objects by these.
                await followed.objects.set_status(made, {"relatedObjects": related})

    async def _carry_out(
        self, item: Item, followed: FollowedKind, todo: Apply | Delete
    ) -> Failed | None:
        """Apply or delete; the reason if the operator would stop itself or lose its own rights."""
        live = followed.cache.get(item.key)
        desired = item.desired if isinstance(todo, Apply) else None
        if can_stop_operator(item.identity, desired) and (
            refused := stop(item.identity, desired, await self._cluster.account())
        ):
            return refused
        if live is None or not can_take_rights(item.identity, live, desired):
            await self._do(item, followed, todo)
            return None
        # One at a time: two bindings that cover each other would both be deleted.
        async with self._cluster.rights_lock:
            account, rights = await self._cluster.account(), await self._cluster.rights()
            refused = refusal(item.identity, live, desired, account, *rights)
            if refused is None:
                await self._do(item, followed, todo)
            return refused

    async def _do(self, item: Item, followed: FollowedKind, todo: Apply | Delete) -> None:
        if isinstance(todo, Apply):
            await self._write(item, followed, todo)
        else:
            await self._delete(item, followed, todo.why)

    async def _delete(self, item: Item, followed: FollowedKind, why: str) -> None:
        live = followed.cache.get(item.key)
        if live is not None:
            # Foreground: a Job is deleted after its pods, so that two never run at once.
            await followed.objects.delete(
                live, propagation="Foreground" if is_job(item.identity) else "Background"
            )
            self._record_write("deleted", item, why=why)

    def _record_write(self, what: str, item: Item, **facts: object) -> None:
        item.wrote = True
        item.standstill = None
        log.info(what, object=str(item.identity), manifest=item.manifest.place, **facts)


def _is_left_bare(item: Item, live: Object) -> bool:
    """Whether we created the ClusterOperator, and were stopped before we wrote its status."""
    managers = {one.get("manager") for one in live["metadata"].get("managedFields") or ()}
    return is_operator(item.identity) and not live.get("status") and managers == {FIELD_MANAGER}


def _set_by_others(item: Item, live: Object, wanted: Object, todo: Apply) -> dict[str, list[str]]:
    """The pod template's fields that this write removes or resets, by field manager."""
    found = {manager: list(paths) for manager, paths in todo.foreign.items()}
    for manager, paths in replaced_fields(item.identity, live, wanted, FIELD_MANAGER).items():
        found.setdefault(manager, []).extend(paths)
    return found


def _failure(item: Item, error: KubeError) -> Failed:
    match error:
        case CannotRead():
            return Failed("CannotRead", str(error))
        case Forbidden() if not error.by_role:
            return Failed(
                "Forbidden", f"{error.message}; correct {item.manifest.place} or allow it"
            )
        case Forbidden():
            return Failed("Forbidden", f"{error.message}; allow it in the operator's role")
        case Invalid():
            return Failed("Invalid", f"{error.message}; correct {item.manifest.place}")
        case ApiError():
            return Failed(error.reason or "ServerError", str(error))
        case _:
            return Failed("ServerUnavailable", str(error))
