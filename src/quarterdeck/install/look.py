"""Finds what of an installation is in a cluster, and what of others is beside it."""

from collections.abc import Collection, Sequence

import msgspec

from quarterdeck.api.meta import CRDS, NAMESPACES, Object, Resource
from quarterdeck.delivery.declaration import Declaration
from quarterdeck.delivery.files import kinds
from quarterdeck.install.facts import NeededRight, described
from quarterdeck.install.removal import (
    SKIPPED_KINDS,
    Found,
    Own,
    content,
    helm_release,
    is_dependent,
    is_of_others,
    is_ours,
    is_touched,
    operand_kinds,
    own,
)
from quarterdeck.install.rights import Needed, removal_rights
from quarterdeck.kube import Client, Forbidden, NotFound, ServerError
from quarterdeck.kube.kinds import discover, kinds_of_definition
from quarterdeck.status.definitions import is_foreign

EVERYWHERE = "default"
"""A namespace of every cluster: what every namespace gets, such as certificates, is there too, with
the same content."""


class UninstallError(Exception):
    """The removal stopped; the message says where, and what to do."""


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """What of an installation is in the cluster."""

    served: dict[str, Object]
    """The definitions of the kinds that our operators serve, by name."""
    definitions: dict[str, Object]
    """Those of them that we installed."""
    users: tuple[Found, ...]
    """Objects of our kinds that a user made."""
    objects: tuple[Found, ...]
    """Our other objects, without namespaces."""
    namespaces: tuple[Found, ...]
    touched: tuple[Found, ...] = ()
    """Objects of others with fields of ours."""
    kept: tuple[Found, ...] = ()
    """Our namespaces that stay, because they have objects of others."""
    others: tuple[Found, ...] = ()
    """The objects of others in them."""
    helm: tuple[str, ...] = ()
    """The releases by which Helm installed something of it."""

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing to remove."""
        return not (self.definitions or self.objects or self.namespaces)

    @property
    def rights(self) -> list[Needed]:
        """The rights that the removal needs."""
        named = (*self.users, *self.objects, *self.namespaces)
        kinds = [
            (resource, "")
            for one in self.served.values()
            for resource in list(kinds_of_definition(one).values())[:1]
        ]
        return removal_rights(
            [
                *((CRDS, "") for _ in self.definitions),
                *((one.resource, one.object["metadata"].get("namespace", "")) for one in named),
                *kinds,
            ]
        )


async def look(
    client: Client, operators: Sequence[Declaration], known: Own | None = None
) -> Installed:
    """What is there; a KubeError if the cluster cannot be asked."""
    known = known or own(operators)
    unreadable: list[NeededRight] = []
    names = {kind.crd_name for kind in kinds(operators)}
    served = {
        one.object["metadata"]["name"]: one.object
        for one in await _list(client, CRDS, unreadable)
        if one.object["metadata"]["name"] in names and not is_foreign(one.object)
    }
    ours = {name: one for name, one in served.items() if is_ours(one, known)}
    own_groups = {(one["spec"]["group"], one["spec"]["names"]["kind"]) for one in ours.values()}
    cleaned = {name for some in operand_kinds(operators) for name in some} | ours.keys()
    custom = [
        found
        for name, one in served.items()
        if name in cleaned
        for found in await objects_of(client, one, unreadable)
    ]
    spaces = [
        one for one in await _list(client, NAMESPACES, unreadable) if is_ours(one.object, known)
    ]
    inside = {one.object["metadata"]["name"] for one in spaces}
    objects: list[Found] = []
    touched: list[Found] = []
    others: list[Found] = []
    for resource in await _plain_kinds(client):
        if (resource.group, resource.kind) in own_groups:
            continue
        listed = await _list(client, resource, unreadable)
        everywhere = {
            (one.resource.kind, one.object["metadata"]["name"]): content(one.object)
            for one in listed
            if one.object["metadata"].get("namespace") == EVERYWHERE
        }
        for found in listed:
            if is_dependent(found.object):
                continue
            if is_ours(found.object, known):
                objects.append(found)
            elif is_touched(found.object, known):
                touched.append(found)
            elif found.namespace in inside and is_of_others(found.object, known, everywhere):
                others.append(found)
    if unreadable:
        raise UninstallError(
            f"you may not: {described(unreadable)}; what may not be read is not taken for nothing"
        )
    used = {one.namespace for one in others}
    kept = [one for one in spaces if one.name in used]
    every = [*objects, *spaces, *(Found(resource=CRDS, object=one) for one in ours.values())]
    return Installed(
        served=served,
        definitions=ours,
        users=tuple(one for one in custom if not is_ours(one.object, known)),
        objects=tuple(objects),
        namespaces=tuple(one for one in spaces if one.name not in used),
        touched=tuple(one for one in touched if one.namespace not in inside - used),
        kept=tuple(kept),
        others=tuple(others),
        helm=tuple(sorted({helm_release(one.object) for one in every} - {""})),
    )


async def dependents(client: Client, uids: Collection[str]) -> list[Found]:
    """The objects all of whose owners are among these."""
    return [
        found
        for resource in await _plain_kinds(client)
        for found in await _list(client, resource)
        if (owners := found.object["metadata"].get("ownerReferences"))
        and all(owner["uid"] in uids for owner in owners)
    ]


async def objects_of(
    client: Client, definition: Object, unreadable: list[NeededRight] | None = None
) -> list[Found]:
    """The objects of a definition, in the first version that is served."""
    for resource in kinds_of_definition(definition).values():
        return await _list(client, resource, unreadable)
    return []


async def _plain_kinds(client: Client) -> list[Resource[Object]]:
    """The kinds to search, each in one version."""
    found = {
        (kind.group, kind.kind): resource for kind, resource in (await discover(client)).items()
    }
    return [resource for resource in found.values() if resource.kind not in SKIPPED_KINDS]


async def _list(
    client: Client, resource: Resource[Object], unreadable: list[NeededRight] | None = None
) -> list[Found]:
    """All objects of a resource; what may not be read is added to `unreadable`, if given."""
    try:
        listed = await client.list(resource)
    except NotFound:
        return []  # no longer served
    except Forbidden:
        if unreadable is None:
            raise
        unreadable.append(NeededRight(group=resource.group, resource=resource.plural, verb="list"))
        return []
    except ServerError as error:
        kind = f"{resource.plural}.{resource.group}".rstrip(".")
        raise UninstallError(
            f"{kind} cannot be listed: {error.message}; what cannot be listed is not taken for "
            f"nothing, and would keep namespaces: mend what serves {kind}, or remove it"
        ) from error
    # The objects of a list do not say their kind.
    return [
        Found(
            resource=resource,
            object={**one, "apiVersion": resource.api_version, "kind": resource.kind},
        )
        for one in listed.items
    ]
