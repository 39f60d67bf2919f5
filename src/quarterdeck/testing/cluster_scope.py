"""Cluster-scoped objects: which there are, and removing those that a test has added.

Many of Quarterdeck's own kinds are singletons, so one that is left behind is found by the next
test. Every kind that can be listed and deleted is looked at, those of new definitions too.

A namespace is emptied here: the controller manager would do the same five seconds later, by design.
"""

import json
import time
from typing import Any, NamedTuple

from quarterdeck.localcluster.api_request import Requests

_GONE_LIMIT = 60.0
_NAMESPACES = "/api/v1/namespaces"
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

# Made and removed by the API server itself, together with the definitions that they serve.
_LEFT_ALONE = frozenset({"apiservices", "componentstatuses", "ipaddresses"})


class Found(NamedTuple):
    """One object, by the collection that it is in and its name."""

    collection: str
    name: str


def snapshot(requests: Requests) -> frozenset[Found]:
    """All cluster-scoped objects that are there now."""
    with requests.connected():
        return frozenset(
            Found(collection, item["metadata"]["name"])
            for collection in _collections(requests)
            for item in _items(requests, collection, _METADATA_ONLY)
        )


def remove_added(requests: Requests, before: frozenset[Found]) -> None:
    """Delete what was not there before, and return when it is gone."""
    added = sorted(snapshot(requests) - before)
    deadline = time.monotonic() + _GONE_LIMIT
    with requests.connected():
        while added := [found for found in added if not _remove(requests, found)]:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"still there {_GONE_LIMIT:.0f} s after its deletion: {added[0]}"
                )
            time.sleep(0.05)


def _remove(requests: Requests, found: Found) -> bool:
    """Whether the object is gone after one more attempt.

    Finalizers are taken away: the controller that would have done so was part of the test.
    """
    path = f"{found.collection}/{found.name}"
    answer = requests.send("DELETE", path)
    if answer.status == 404:
        return True
    if found.collection == _NAMESPACES:
        _empty(requests, found.name)
        return False
    if answer.ok and answer.json().get("metadata", {}).get("finalizers"):
        patch = json.dumps({"metadata": {"finalizers": None}}).encode()
        requests.send("PATCH", path, patch, "application/merge-patch+json")
    return False


def _empty(requests: Requests, namespace: str) -> None:
    """Delete all that is in a namespace, which lets nothing new in; let it go when it is empty."""
    options = json.dumps({"gracePeriodSeconds": 1, "propagationPolicy": "Background"}).encode()
    left = 0
    for collection in _collections(requests, namespace):
        for item in _items(requests, collection, _METADATA_ONLY):
            left += 1
            path = f"{collection}/{item['metadata']['name']}"
            requests.send("DELETE", path, options)
            if item["metadata"].get("finalizers"):
                patch = json.dumps({"metadata": {"finalizers": None}}).encode()
                requests.send("PATCH", path, patch, "application/merge-patch+json")
    if left:
        return
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}, "spec": {}}
    requests.send("PUT", f"{_NAMESPACES}/{namespace}/finalize", json.dumps(body).encode())


def _collections(requests: Requests, namespace: str = "") -> list[str]:
    """Where the objects of each kind are, of no namespace or of one, in the preferred version."""
    scope = "Namespaced" if namespace else "Cluster"
    within = f"/namespaces/{namespace}" if namespace else ""
    found = []
    for root in ("/api", "/apis"):
        for group in _items(requests, root, _DISCOVERY):
            version = group["versions"][0]
            name = group["metadata"].get("name", "")
            base = f"{root}/{name}/{version['version']}" if name else f"{root}/{version['version']}"
            found += [
                f"{base}{within}/{resource['resource']}"
                # Null, for a moment, of a group whose definitions have just come.
                for resource in version.get("resources") or ()
                if resource["scope"] == scope
                and {"list", "delete"} <= set(resource["verbs"] or ())
                and resource["resource"] not in _LEFT_ALONE
            ]
    return found


def _items(requests: Requests, path: str, accept: str) -> list[Any]:
    answer = requests.send("GET", path, accept=accept)
    deadline = time.monotonic() + _GONE_LIMIT
    while answer.status == 429 and time.monotonic() < deadline:
        # The storage of a definition that has just come is not ready yet.
        time.sleep(0.1)
        answer = requests.send("GET", path, accept=accept)
    if not answer.ok:
        raise RuntimeError(f"GET {path}: {answer.body.decode(errors='replace')}")
    return answer.json()["items"] or []
