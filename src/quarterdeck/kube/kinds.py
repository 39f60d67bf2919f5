"""The kinds that the API server serves: their plural names, and whether they are namespaced.

Two discovery requests read them all. The kinds of a definition that was just established come from
the definition itself, because discovery lags behind.

`discovery.py` asks about a single kind.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from quarterdeck.api.meta import Object, Resource, foreign
from quarterdeck.kube.client import Client
from quarterdeck.log import get_logger

log = get_logger("kube.kinds")

DISCOVERY_INTERVAL = 2.0
"""Seconds between two discovery requests, while a kind is missing."""
_FORM = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
ACCEPT = f"{_FORM.format('v2')},{_FORM.format('v2beta1')}"
_NEEDED = frozenset({"list", "watch", "create", "patch"})


class GroupVersionKind(NamedTuple):
    """A kind in one version of its API."""

    group: str
    version: str
    kind: str

    @classmethod
    def of(cls, obj: Object) -> "GroupVersionKind":
        """The kind in an object's `apiVersion` and `kind`."""
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        return cls(group, version, str(obj["kind"]))


Kinds = dict[GroupVersionKind, Resource[Object]]


class _ResponseKind(msgspec.Struct):
    kind: str = ""


class _DiscoveredResource(msgspec.Struct, rename="camel"):
    resource: str
    scope: str = ""
    verbs: list[str] = []
    response_kind: _ResponseKind | None = None


class _DiscoveredVersion(msgspec.Struct):
    version: str
    resources: list[_DiscoveredResource] | None = None


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _DiscoveredGroup(msgspec.Struct):
    metadata: _Meta = _Meta()
    versions: list[_DiscoveredVersion] = []


class _Discovery(msgspec.Struct):
    items: list[_DiscoveredGroup] | None = None


class KnownKinds:
    """The kinds as of the last discovery, which is repeated when a kind is missing."""

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._kinds: Kinds = {}
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()

    def get(self, kind: GroupVersionKind) -> Resource[Object] | None:
        """The kind's resource, without a request; None if it is not known to be served."""
        return self._kinds.get(kind)

    async def find(self, kind: GroupVersionKind) -> Resource[Object] | None:
        """The kind's resource; None if it is not served, as of at most `DISCOVERY_INTERVAL` ago."""
        if kind not in self._kinds:
            await self._discover(kind)
        return self._kinds.get(kind)

    def versions(self, kind: GroupVersionKind) -> list[str]:
        """The versions in which the kind is served, as of the last discovery."""
        same = (kind.group, kind.kind)
        return sorted(known.version for known in self._kinds if (known.group, known.kind) == same)

    def learn(self, definition: Object) -> None:
        """Add the kinds of an established definition, before discovery lists them."""
        self._kinds |= kinds_of_definition(definition)

    async def _discover(self, missing: GroupVersionKind) -> None:
        async with self._asking:
            now = self._clock()
            if missing in self._kinds or (
                self._asked_at is not None and now - self._asked_at < DISCOVERY_INTERVAL
            ):
                return
            self._kinds |= await discover(self._client)
            self._asked_at = now
            log.v(4).info("kinds discovered", kinds=len(self._kinds))


async def discover(client: Client) -> Kinds:
    """The kinds that are served now."""
    found: Kinds = {}
    for root in ("/api", "/apis"):
        found |= parse_discovery(await client.raw(root, accept=ACCEPT))
    return found


def parse_discovery(body: bytes) -> Kinds:
    """The kinds in one answer that can be listed, watched and written."""
    answer = msgspec.json.decode(body, type=_Discovery)
    return dict(_kinds(answer))


def kinds_of_definition(live: Object) -> Kinds:
    """The kinds of a CustomResourceDefinition, one for each served version."""
    spec = live["spec"]
    names = spec["names"]
    return {
        GroupVersionKind(spec["group"], version["name"], names["kind"]): foreign(
            f"{spec['group']}/{version['name']}",
            names["kind"],
            names["plural"],
            namespaced=spec["scope"] == "Namespaced",
        )
        for version in spec["versions"]
        if version.get("served")
    }


def _kinds(answer: _Discovery) -> Iterator[tuple[GroupVersionKind, Resource[Object]]]:
    for group in answer.items or ():
        name = group.metadata.name
        for version in group.versions:
            api_version = f"{name}/{version.version}" if name else version.version
            for resource in version.resources or ():
                kind = resource.response_kind.kind if resource.response_kind else ""
                if kind and set(resource.verbs) >= _NEEDED:
                    namespaced = resource.scope == "Namespaced"
                    yield (
                        GroupVersionKind(name, version.version, kind),
                        foreign(api_version, kind, resource.resource, namespaced=namespaced),
                    )
