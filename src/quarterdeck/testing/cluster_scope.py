"""Lists cluster-scoped objects, and removes those that a test has added.

Many of Quarterdeck's own kinds are singletons, so the next test would find an object that is left.
Every kind that can be listed and deleted is included, also those of new definitions.

Namespaces are emptied here, because the controller manager does so only five seconds later.
"""

import json
import time
from typing import Any, NamedTuple

from quarterdeck.localcluster.api_request import Requests

_REMOVAL_TIMEOUT = 60.0
_NAMESPACES = "/api/v1/namespaces"
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# The API server creates and removes these itself, together with definitions.
_LEFT_ALONE = frozenset({"apiservices", "componentstatuses", "ipaddresses"})

# Every namespace has these; deleted, they are restored.
_RESTORED = ("/serviceaccounts/default", "/configmaps/kube-root-ca.crt")


class ObjectInCollection(NamedTuple):
    """One object, by its collection and its name."""

    collection: str
    name: str


def snapshot(requests: Requests) -> frozenset[ObjectInCollection]:
    """All cluster-scoped objects now."""
    with requests.connected():
        return frozenset(
            ObjectInCollection(collection, item["metadata"]["name"])
            for collection in _collections(requests)
            for item in _items(requests, collection, _METADATA_ONLY)
        )


def remove_added(requests: Requests, before: frozenset[ObjectInCollection]) -> None:
    """Delete the objects that were not there before, and return when they are gone."""
    added = sorted(snapshot(requests) - before)
    deadline = time.monotonic() + _REMOVAL_TIMEOUT
    with requests.connected():
        while added := [found for found in added if not _remove(requests, found)]:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"still there {_REMOVAL_TIMEOUT:.0f} s after its deletion: {added[0]}"
                )
            time.sleep(0.05)


def _remove(requests: Requests, found: ObjectInCollection) -> bool:
    """Try to delete an object; True if it is gone.

    Finalizers are removed, because their controller was part of the test.
    """
    if found.collection == _NAMESPACES:
        return _remove_namespace(requests, found.name)
    path = f"{found.collection}/{found.name}"
    answer = requests.send("DELETE", path)
    if answer.status == 404:
        return True
    if answer.ok and answer.json().get("metadata", {}).get("finalizers"):
        _patch_finalizers(requests, path)
    return False


def _remove_namespace(requests: Requests, name: str) -> bool:
    """Empty and delete a namespace; True if it is gone.

    The controller manager must not do it: it begins five seconds later, and would continue in the
    next namespace of this name. It ignores a namespace without finalizers; but what it has begun,
    it ends.
    """
    path = f"{_NAMESPACES}/{name}"
    answer = requests.send("GET", path)
    if answer.status == 404:
        return True
    if "deletionTimestamp" in answer.json()["metadata"]:
        _empty(requests, name)
        return False
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {}}
    requests.send("PUT", f"{path}/finalize", json.dumps(body).encode())
    if _empty(requests, name, without=_RESTORED):
        return False
    requests.send("DELETE", path)  # From now on, nothing can be created in it.
    _empty(requests, name)
    requests.send("DELETE", path)
    return requests.send("GET", path).status == 404


def _empty(requests: Requests, namespace: str, without: tuple[str, ...] = ()) -> int:
    """Delete all objects in a namespace but some; how many there were."""
    options = json.dumps({"gracePeriodSeconds": 1, "propagationPolicy": "Background"}).encode()
    found = 0
    for collection in _collections(requests, namespace):
        for item in _items(requests, collection, _METADATA_ONLY):
            path = f"{collection}/{item['metadata']['name']}"
            if path.endswith(without):
                continue
            found += 1
            requests.send("DELETE", path, options)
            if item["metadata"].get("finalizers"):
                _patch_finalizers(requests, path)
    return found


def _patch_finalizers(requests: Requests, path: str) -> None:
    patch = json.dumps({"metadata": {"finalizers": None}}).encode()
    requests.send("PATCH", path, patch, "application/merge-patch+json")


def _collections(requests: Requests, namespace: str = "") -> list[str]:
    """The paths of all collections, cluster-scoped or of a namespace.

    A kind is listed in the first version that has it, which is the preferred one.
    """
    scope = "Namespaced" if namespace else "Cluster"
    within = f"/namespaces/{namespace}" if namespace else ""
    found: dict[tuple[str, str], str] = {}
    for root in ("/api", "/apis"):
        for group in _items(requests, root, _DISCOVERY):
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                base = "/".join(filter(None, (root, name, version["version"])))
                # Null for a moment in a group with a new definition.
                for resource in version.get("resources") or ():
                    plural = resource["resource"]
                    if (
                        resource["scope"] == scope
                        and {"list", "delete"} <= set(resource["verbs"] or ())
                        and plural not in _LEFT_ALONE
                    ):
                        found.setdefault((name, plural), f"{base}{within}/{plural}")
    return list(found.values())


def _items(requests: Requests, path: str, accept: str) -> list[Any]:
    answer = requests.send("GET", path, accept=accept)
    deadline = time.monotonic() + _REMOVAL_TIMEOUT
    while answer.status == 429 and time.monotonic() < deadline:
        # The storage of a new definition is not ready yet.
        time.sleep(0.1)
        answer = requests.send("GET", path, accept=accept)
    if not answer.ok:
        raise RuntimeError(f"GET {path}: {answer.body.decode(errors='replace')}")
    return answer.json()["items"] or []
