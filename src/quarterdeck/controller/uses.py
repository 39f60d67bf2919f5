"""The requests that an operator declares to its manager. Pure.

Roles are derived from them. Requests for events and for the operator's own Lease are not included:
each operator needs the same rights for those.
"""

from collections.abc import Iterable
from typing import Any, Literal, get_args

import msgspec

from quarterdeck.api.meta import Object, Resource
from quarterdeck.controller.mistakes import UnknownWrite
from quarterdeck.controller.selection import Selection

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete"]
Write = Literal["ensure", "create", "patch", "delete", "prune", "status", "claim", "finalizer"]
"""The calls on `Objects` that an operator can declare; `status` is `set_status`."""

WRITES: frozenset[Write] = frozenset(get_args(Write))

_READ: tuple[Verb, ...] = ("list", "watch")
_VERBS: dict[Write, tuple[Verb, ...]] = {
    # `ensure` creates an object that its cache does not have, and reads one that exists all the
    # same.
    "ensure": ("get", "create", "patch"),
    "create": ("create",),
    "patch": ("patch",),
    "delete": ("delete",),
    "prune": ("delete",),
    "status": ("patch",),
    "claim": ("get", "patch"),
    "finalizer": ("patch",),
}


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """Verbs that an operator uses on objects of a kind."""

    resource: Resource[Object]
    """The kind, untyped."""
    namespace: str = ""
    """Only in this namespace; empty for all namespaces, and for a cluster-scoped kind."""
    name: str = ""
    """Only the object with this name; empty for all."""
    subresource: str = ""
    role: str = ""
    """The role that the operator binds by itself in some namespaces; empty for its own role."""
    verbs: frozenset[Verb]


class UndeclaredWrite(Exception):  # noqa: N818 - reads as what it is
    """An operator made a write that it did not declare."""

    def __init__(self, kind: str, write: str) -> None:
        super().__init__(
            f'{write} of a {kind} was not declared: add "{write}" to `writes` where '
            f"`manager.objects` is asked for it"
        )


def uses_of_cache(resource: Resource[Any], selection: Selection) -> list[Use]:
    """The requests of a cache."""
    return uses_of_verbs(resource, selection, _READ)


def uses_of_writes(
    resource: Resource[Any], selection: Selection, writes: Iterable[Write], role: str = ""
) -> list[Use]:
    """The requests of the declared calls."""
    writes = tuple(writes)
    for write in writes:
        if write not in _VERBS:
            raise UnknownWrite(write, _VERBS)
    return [
        msgspec.structs.replace(use, role=role)
        for write in writes
        for use in uses_of_verbs(
            resource, selection, _VERBS[write], "status" if write == "status" else ""
        )
    ]


def uses_of_verbs(
    resource: Resource[Any], selection: Selection, verbs: Iterable[Verb], subresource: str = ""
) -> list[Use]:
    """These verbs on these objects."""
    verbs = frozenset(verbs)
    # A create request has no name in its path, so a role cannot limit it to one.
    named, unnamed = verbs - {"create"}, verbs & {"create"}
    namespace = selection.namespace if resource.namespaced else ""
    return [
        Use(
            resource=resource.plain,
            namespace=namespace,
            name=name,
            subresource=subresource,
            verbs=some,
        )
        for name, some in ((selection.name, named), ("", unnamed))
        if some
    ]


def merged_uses(uses: Iterable[Use]) -> tuple[Use, ...]:
    """The uses in a fixed order, with one use for all verbs on the same objects."""
    verbs: dict[tuple[str, ...], frozenset[Verb]] = {}
    first: dict[tuple[str, ...], Use] = {}
    for use in uses:
        at = (
            use.resource.group,
            use.resource.plural,
            use.subresource,
            use.namespace,
            use.name,
            use.role,
        )
        first.setdefault(at, use)
        verbs[at] = verbs.get(at, frozenset()) | use.verbs
    return tuple(msgspec.structs.replace(first[at], verbs=verbs[at]) for at in sorted(first))
