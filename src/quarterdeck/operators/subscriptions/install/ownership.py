"""Whether objects that a ClusterServiceVersion needs belong to somebody else. Pure."""

from collections.abc import Callable, Iterable

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion
from quarterdeck.controller import Objects
from quarterdeck.controller.metadata import key_of
from quarterdeck.operators.subscriptions.names import owner_of

Wanted = tuple[Objects[Object], Key]
"""An object that is needed: its kind, and its key."""


def taken(
    csv: ClusterServiceVersion,
    wanted: Iterable[Wanted],
    exists: Callable[[Key], bool],
    replaced: Key | None = None,
) -> list[str]:
    """The needed objects that another ClusterServiceVersion has, or nobody that we know.

    `exists` tells whether there is a ClusterServiceVersion: the objects of one that is gone, and
    of the `replaced` one, can be taken over.
    """
    namespace = csv.metadata.namespace
    mine = {key_of(csv), replaced}
    found = []
    for objects, key in wanted:
        live = objects.get(key)
        if live is None:
            continue
        owner, what = owner_of(live), f"{objects.resource.kind} {key.name}"
        if owner is None:
            found.append(f"{what} was not created for a ClusterServiceVersion; delete or rename it")
        elif owner not in mine and exists(owner):
            where = "" if owner.namespace == namespace else f" in the namespace {owner.namespace}"
            found.append(f"{what} belongs to {owner.name}{where}")
    return found
