"""Reads from a cluster what an installation has to know, and what the user may do."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from quarterdeck.api.config_v1 import CLUSTER_OPERATORS, CLUSTER_VERSIONS
from quarterdeck.api.meta import CRDS, DEPLOYMENTS, Object, Resource, foreign
from quarterdeck.delivery.declaration import Declaration
from quarterdeck.delivery.installation import ALL_IN_ONE
from quarterdeck.install.conflicts import Live
from quarterdeck.install.facts import ClusterFacts, Identity, NeededRight, identity
from quarterdeck.install.rights import Needed
from quarterdeck.kube import Client, Forbidden, NotFound
from quarterdeck.kube.kinds import GroupVersionKind, Kinds
from quarterdeck.status.definitions import is_foreign

ACCESS_REVIEWS = foreign(
    "authorization.k8s.io/v1",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    namespaced=False,
)


class _ServerVersion(msgspec.Struct, rename="camel"):
    git_version: str = ""


class _Group(msgspec.Struct):
    name: str


class _Groups(msgspec.Struct):
    groups: list[_Group]


async def observe(client: Client, applier: Declaration) -> ClusterFacts:
    """The facts about the cluster; a KubeError if it cannot be asked."""
    version, groups = await asyncio.gather(client.raw("/version"), client.raw("/apis"))
    unreadable: list[NeededRight] = []
    read = _Reader(client, unreadable)
    definitions = {one["metadata"]["name"]: one for one in await read.all(CRDS)}
    reporting = [one for one in await read.all(CLUSTER_OPERATORS.plain) if is_foreign(one)]
    return ClusterFacts(
        server_version=msgspec.json.decode(version, type=_ServerVersion).git_version,
        groups=frozenset(one.name for one in msgspec.json.decode(groups, type=_Groups).groups),
        definitions=definitions,
        reporting=frozenset(one["metadata"]["name"] for one in reporting),
        cluster_version=await read.one(CLUSTER_VERSIONS.plain, "version"),
        applier=await read.one(DEPLOYMENTS, applier.account, applier.namespace),
        all_in_one=await read.one(DEPLOYMENTS, ALL_IN_ONE, ALL_IN_ONE),
        unreadable=tuple(unreadable),
    )


async def live_objects(client: Client, objects: Iterable[Object], kinds: Kinds) -> Live:
    """Those of the objects that are in the cluster, also if the user may not see all of them."""
    found: dict[Identity, Object] = {}
    for obj in objects:
        resource = kinds.get(GroupVersionKind.of(obj))
        namespace, name = str(obj["metadata"].get("namespace") or ""), obj["metadata"]["name"]
        if resource is None:
            continue
        with suppress(Forbidden):  # The right to read it is among those that are looked at.
            if (live := await client.find(resource, name, namespace)) is not None:
                found[identity(obj)] = live
    return found


async def lacking_rights(client: Client, needed: Iterable[Needed]) -> list[NeededRight]:
    """Those that the user has not got, each once."""
    needed = list(needed)
    denied = await _denied(client, {one.right for one in needed})
    instead = {right for one in needed if one.right in denied for right in one.instead}
    denied |= await _denied(client, instead - denied)
    return list(dict.fromkeys(right for one in needed for right in one.lacking(denied)))


class _Reader:
    """Reads what is there, and writes down what may not be read."""

    def __init__(self, client: Client, unreadable: list[NeededRight]) -> None:
        self._client = client
        self._unreadable = unreadable

    async def all(self, resource: Resource[Object]) -> list[Object]:
        """All objects of a resource; none if it is not served."""
        try:
            return list((await self._client.list(resource)).items)
        except NotFound:
            return []
        except Forbidden:
            self._may_not("list", resource)
            return []

    async def one(
        self, resource: Resource[Object], name: str, namespace: str = ""
    ) -> Object | None:
        """The object; None if there is none."""
        try:
            return await self._client.find(resource, name, namespace)
        except Forbidden:
            self._may_not("get", resource, namespace)
            return None

    def _may_not(self, verb: str, resource: Resource[Object], namespace: str = "") -> None:
        right = NeededRight(
            group=resource.group, resource=resource.plural, verb=verb, namespace=namespace
        )
        self._unreadable.append(right)


async def _denied(client: Client, rights: Iterable[NeededRight]) -> set[NeededRight]:
    rights = list(rights)
    allowed = await asyncio.gather(*(_is_allowed(client, right) for right in rights))
    return {right for right, may in zip(rights, allowed, strict=True) if not may}


async def _is_allowed(client: Client, right: NeededRight) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": right.namespace,
        "name": right.name,
    }
    review = {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }
    answer = await client.create(ACCESS_REVIEWS, review)
    return bool((answer.get("status") or {}).get("allowed"))
