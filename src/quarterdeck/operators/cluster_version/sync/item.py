"""The state of one manifest in a run. Pure."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quarterdeck.api.meta import Key, Object
from quarterdeck.operators.cluster_version.sync.desired import expected_versions
from quarterdeck.operators.cluster_version.sync.plan import is_job
from quarterdeck.payload import annotations as known
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import Manifest, ObjectIdentity
from quarterdeck.status.rollout import READINESS

if TYPE_CHECKING:
    from datetime import datetime

    from quarterdeck.controller.any_kind import FollowedKind
    from quarterdeck.operators.cluster_version.sync.standstill import Standstill

_OPERATOR = ("config.openshift.io", "ClusterOperator")
_WAITED_FOR = frozenset({*READINESS, _OPERATOR})


class Item:
    """A manifest, and what the run knows about its object."""

    __slots__ = (
        "announced",
        "autoscaled",
        "creating",
        "desired",
        "done",
        "duplicate_of",
        "expected",
        "followed",
        "identity",
        "idle",
        "key",
        "manifest",
        "settled",
        "since",
        "standstill",
        "wanted",
        "wrote",
    )

    def __init__(self, manifest: Manifest, mode: Mode) -> None:
        self.manifest = manifest
        self.idle = _is_idle(manifest, mode)
        self.followed: FollowedKind | None = None
        self.duplicate_of = ""
        """The place of an earlier manifest of the same object with other content, which wins."""
        self.wrote = False
        self.identity = manifest.identity
        self.expected = expected_versions(manifest)
        self.key = Key(self.identity.namespace, self.identity.name)
        self.desired: Object | None = None
        """The desired object of the manifest."""
        self.wanted: Object | None = None
        """The desired object without the field that an autoscaler owns."""
        self.announced = ""
        """The uid of the object whose foreign fields were announced and are still to be removed."""
        self.creating = asyncio.Lock()
        """Held during a create: a ClusterOperator is created before its turn, or in its turn."""
        self.autoscaled = False
        self.settled: object = None
        """The form in which the object was as desired."""
        self.standstill: Standstill | None = None
        self.since: datetime | None = None
        """When the run first waited for it; the object may be much older."""
        self.done: Object | None = None
        """The object in the cache when the step was done; a changed object is another one."""

    def form(self, live: Object) -> object:
        """A value that stays equal while no field changes that the plan depends on."""
        return self.autoscaled, _form(self.identity, live)


def is_operator(identity: ObjectIdentity) -> bool:
    """Whether the object is a ClusterOperator."""
    return (identity.group, identity.kind) == _OPERATOR


def mark_duplicates(items: Sequence[Item]) -> None:
    """Mark differing manifests of one object, which would undo each other's writes."""
    first: dict[ObjectIdentity, Manifest] = {}
    for item in items:
        if item.idle:
            continue
        before = first.setdefault(item.identity, item.manifest)
        if before.object != item.manifest.object:
            item.duplicate_of = before.place


def _is_idle(manifest: Manifest, mode: Mode) -> bool:
    """Whether this mode does nothing for the manifest, whatever the cluster holds."""
    if mode is Mode.UPDATING:
        return False
    return manifest.annotations.get(known.DELETE) == "true" or (
        mode is Mode.RECONCILING and is_job(manifest.identity)
    )


def _form(identity: ObjectIdentity, live: Object) -> object:
    """A value that stays equal while no field changes that a manifest can set.

    Kinds with a readiness rule change their status often; their generation counts other changes.
    """
    meta = live["metadata"]
    if (identity.group, identity.kind) not in _WAITED_FOR:
        return meta["uid"], meta["resourceVersion"]
    said = ("uid", "generation", "labels", "annotations", "ownerReferences", "deletionTimestamp")
    return [meta.get(field) for field in said]
