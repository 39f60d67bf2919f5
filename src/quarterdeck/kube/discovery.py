"""Asks the API server's discovery whether it serves a kind.

A 404 is not enough: a load balancer answers 404 too, if it finds no backend.
"""

from typing import Any, TypeVar

import msgspec

from quarterdeck.api.meta import Resource
from quarterdeck.kube.client import Client
from quarterdeck.kube.errors import UnexpectedAnswer


class _ApiVersion(msgspec.Struct, rename="camel"):
    group_version: str


class _ApiGroup(msgspec.Struct):
    versions: list[_ApiVersion] = []


class _GroupList(msgspec.Struct, tag_field="kind", tag="APIGroupList"):
    groups: list[_ApiGroup]


class _ApiResource(msgspec.Struct):
    name: str
    namespaced: bool = False


class _ResourceList(msgspec.Struct, tag_field="kind", tag="APIResourceList"):
    resources: list[_ApiResource]


A = TypeVar("A", _GroupList, _ResourceList)


async def is_served(client: Client, resource: Resource[Any]) -> bool:
    """Whether the server serves the kind, with this scope; `KubeError` if discovery fails.

    A kind that was defined again with another scope is another kind: its objects have other paths.
    """
    if not resource.group:
        path = f"/api/{resource.version}"
    else:
        path = f"/apis/{resource.api_version}"
        groups = _decoded(await client.raw("/apis"), "/apis", _GroupList).groups
        if not any(
            version.group_version == resource.api_version
            for group in groups
            for version in group.versions
        ):
            return False
    listed = _decoded(await client.raw(path), path, _ResourceList).resources
    wanted = (resource.plural, resource.namespaced)
    return any((one.name, one.namespaced) == wanted for one in listed)


def _decoded(body: bytes, path: str, kind: type[A]) -> A:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise UnexpectedAnswer(f"GET {path}: answer is not discovery: {error}") from error
