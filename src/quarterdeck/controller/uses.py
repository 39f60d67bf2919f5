"""What an operator asks the API server for, recorded as its manager is asked. Pure.

Roles are derived from it. Events and the operator's own Lease are not in it: each operator needs
the same rights for those.
"""

from collections.abc import Iterable
from typing import Any, Literal, get_args

import msgspec

from quarterdeck.api.meta import Object, Resource
from quarterdeck.controller.selection import Selection

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete"]
Write = Literal["ensure", "create", "patch", "delete", "prune", "status", "claim", "finalizer"]
"""What an operator may say that it will call on `Objects`; `status` is `set_status`."""

WRITES: frozenset[Write] = frozenset(get_args(Write))

_READ: tuple[Verb, ...] = ("list", "watch")
_VERBS: dict[Write, tuple[Verb, ...]] = {
    # An object that its cache does not have is created; one that is there all the same is read.
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
    """Some verbs on some objects of a kind."""

    resource: Resource[Object]
    """The kind; always its plain twin."""
    namespace: str = ""
    """Only in this namespace; empty for all, and for a kind that is in none."""
    name: str = ""
    """Only the object of this name; empty for all."""
    subresource: str = ""
    verbs: frozenset[Verb]


class UndeclaredWrite(Exception):  # noqa: N818 - reads as what it is
    """An operator writes what it did not say that it would."""

    def __init__(self, kind: str, write: str) -> None:
        super().__init__(
            f'{write} of a {kind} was not declared: add "{write}" to `writes` where '
            f"`manager.objects` is asked for it"
        )


def reading(resource: Resource[Any], selection: Selection) -> list[Use]:
    """What a cache needs."""
    return using(resource, selection, _READ)


def writing(resource: Resource[Any], selection: Selection, writes: Iterable[Write]) -> list[Use]:
    """What the calls that were declared need."""
    return [
        use
        for write in writes
        for use in using(resource, selection, _VERBS[write], "status" if write == "status" else "")
    ]


def using(
    resource: Resource[Any], selection: Selection, verbs: Iterable[Verb], subresource: str = ""
) -> list[Use]:
    """These verbs on these objects."""
    verbs = frozenset(verbs)
    # A create names no object that could be compared, so no role can limit it to a name.
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


def joined(uses: Iterable[Use]) -> tuple[Use, ...]:
    """The uses with one for all verbs on the same objects, in a fixed order."""
    verbs: dict[tuple[str, str, str, str, str], frozenset[Verb]] = {}
    first: dict[tuple[str, str, str, str, str], Use] = {}
    for use in uses:
        at = (
            use.resource.group,
            use.resource.plural,
            use.subresource,
            use.namespace,
            use.name,
        )
        first.setdefault(at, use)
        verbs[at] = verbs.get(at, frozenset()) | use.verbs
    return tuple(msgspec.structs.replace(first[at], verbs=verbs[at]) for at in sorted(first))
