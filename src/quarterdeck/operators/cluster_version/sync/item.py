"""A manifest on its way into the cluster, and what is known of it without a request. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quarterdeck.api.meta import Key, Object
from quarterdeck.operators.cluster_version.sync.desired import expected_versions
from quarterdeck.operators.cluster_version.sync.plan import is_job
from quarterdeck.payload import annotations as known
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import Identity, Manifest
from quarterdeck.status.rollout import READINESS

if TYPE_CHECKING:
    from datetime import datetime

    from quarterdeck.operators.cluster_version.sync.cluster import Followed
    from quarterdeck.operators.cluster_version.sync.standstill import Standstill

_OPERATOR = ("config.openshift.io", "ClusterOperator")
_WAITED_FOR = frozenset({*READINESS, _OPERATOR})


class Item:
    """A manifest, with what was found out about it."""

    __slots__ = (
        "autoscaled",
        "desired",
        "done",
        "expected",
        "followed",
        "identity",
        "idle",
        "key",
        "manifest",
        "settled",
        "since",
        "standstill",
        "twin",
        "wanted",
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
        """What the manifest wants of its object."""
        self.wanted: Object | None = None
        """The same, without what an autoscaler decides."""
        self.autoscaled = False
        self.settled: object = None
        """The form in which the object was found to be as desired."""
        self.standstill: Standstill | None = None
        self.since: datetime | None = None
        """When it was waited for first; its object may have been made long before."""
        self.done: Object | None = None
        """The object in the cache that was found done; a changed one is another."""

    def form(self, live: Object) -> object:
        """What is the same as long as nothing changes that decides whether it is as wanted."""
        return self.autoscaled, _form(self.identity, live)


def is_operator(identity: Identity) -> bool:
    """Whether the object is a ClusterOperator."""
    return (identity.group, identity.kind) == _OPERATOR


def mark_twins(items: Sequence[Item]) -> None:
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
