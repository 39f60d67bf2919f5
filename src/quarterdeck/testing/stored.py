"""Which objects a control plane stores, by the keys in its etcd, and the paths of these objects.

One request answers what would take a list of each of the hundred kinds. The API server writes a
key for each object: `/registry/clusterroles/NAME`, `/registry/pods/NAMESPACE/NAME`, and for
custom resources `/registry/GROUP/PLURAL/NAME` or `/registry/GROUP/PLURAL/NAMESPACE/NAME`.
"""

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from quarterdeck.localcluster.api_request import Requests
from quarterdeck.testing.discovery import served_resources

_PREFIX = "/registry/"
_EVENTS = "events/"

_OLD_NAMES = {
    "minions": "nodes",
    "controllers": "replicationcontrollers",
    "ingress": "ingresses",
    "services/specs": "services",
    "services/endpoints": "endpoints",
}
"""The beginnings of keys that are older than the names of their resources."""


class StoredObject(NamedTuple):
    """One object, by its collection's path and its name."""

    collection: str
    name: str

    @property
    def path(self) -> str:
        """The path of the object."""
        return f"{self.collection}/{self.name}"


class _Pair(msgspec.Struct, frozen=True):
    key: bytes


class _Range(msgspec.Struct, frozen=True):
    """What etcd returns for a range of keys."""

    kvs: list[_Pair] = []


def stored_keys(etcd: Requests, namespace: str = "") -> frozenset[str]:
    """The keys of all objects but events; or of all objects in a namespace, with its events."""
    if not namespace:
        return frozenset({*_keys(etcd, "", _EVENTS), *_keys(etcd, _after(_EVENTS), _after(""))})
    others = (key for key in stored_keys(etcd) if key.split("/")[-2:-1] == [namespace])
    events = f"{_EVENTS}{namespace}/"
    return frozenset({*others, *_keys(etcd, events, _after(events))})


def _after(prefix: str) -> str:
    """What comes after all keys with this prefix, which ends with a slash or is empty."""
    return prefix.removesuffix("/") + "0" if prefix else "\x7f"


def _keys(etcd: Requests, begin: str, end: str) -> Iterator[str]:
    """The keys of a range, without the prefix of all."""
    limits = {"key": begin, "range_end": end}
    encoded = {name: b64encode(f"{_PREFIX}{it}".encode()).decode() for name, it in limits.items()}
    answer = etcd.send("POST", "/v3/kv/range", json.dumps({**encoded, "keys_only": True}).encode())
    if not answer.ok:
        raise RuntimeError(f"etcd: {answer.body.decode(errors='replace')}")
    for pair in msgspec.json.decode(answer.body, type=_Range).kvs:
        yield pair.key.decode().removeprefix(_PREFIX)


class Served(NamedTuple):
    """The paths of the served collections, by the beginning of their objects' keys."""

    cluster_scoped: dict[str, str]
    namespaced: dict[str, str]
    """With `{}` in place of the namespace."""

    def find(self, key: str) -> StoredObject | None:
        """The object of a key; None if no served kind has such a key."""
        for old, name in _OLD_NAMES.items():
            if key.startswith(f"{old}/"):
                key = f"{name}{key.removeprefix(old)}"
        parts = key.split("/")
        # The longer beginning first: it has the group of a custom resource.
        for length in (2, 1):
            kind, rest = "/".join(parts[:length]), parts[length:]
            if len(rest) == 1 and kind in self.cluster_scoped:
                return StoredObject(self.cluster_scoped[kind], rest[0])
            if len(rest) == 2 and kind in self.namespaced:
                return StoredObject(self.namespaced[kind].format(rest[0]), rest[1])
        return None


def served(requests: Requests) -> Served:
    """The collections that the API server serves now.

    A kind is found in the first version that has it, which is the preferred one. Some kinds of
    Kubernetes have the group in their keys, most have not.
    """
    found = Served({}, {})
    for one in served_resources(requests):
        for kind in (f"{one.group}/{one.plural}", one.plural):
            if one.namespaced:
                path = f"{one.base}/namespaces/{{}}/{one.plural}"
                found.namespaced.setdefault(kind, path)
            else:
                found.cluster_scoped.setdefault(kind, f"{one.base}/{one.plural}")
    return found
