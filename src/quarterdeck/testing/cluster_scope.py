"""Finds the cluster-scoped objects that a test has added, and removes them.

Many of Quarterdeck's own kinds are singletons, so the next test would find an object that is left.
Every kind is included, also those of new definitions.

Namespaces are emptied here, because the controller manager does so only five seconds later, with
some two hundred requests for each.
"""

import json
import time
from collections.abc import Iterable

from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.testing.stored import Served, StoredObject, served, stored_keys

_REMOVAL_TIMEOUT = 60.0
_NAMESPACES = "/api/v1/namespaces"

# The API server creates and removes these itself, together with definitions and Services.
_LEFT_ALONE = ("apiregistration.k8s.io/apiservices/", "ipaddresses/")

_WORKLOADS = tuple(
    f"{plural}/"
    for plural in ("pods", "replicasets", "deployments", "statefulsets", "daemonsets", "jobs")
)

# Every namespace has these; deleted, they are restored.
_RESTORED = ("/serviceaccounts/default", "/configmaps/kube-root-ca.crt")


def snapshot(cluster: ClusterAccess) -> frozenset[str]:
    """What the cluster stores now; `added` compares with it."""
    return stored_keys(cluster.etcd_requests())


def added(cluster: ClusterAccess, before: frozenset[str]) -> list[StoredObject]:
    """The cluster-scoped objects that were not there before, in order."""
    new = [key for key in snapshot(cluster) - before if not key.startswith(_LEFT_ALONE)]
    if not new:
        return []
    kinds = served(cluster.requests())
    collections = frozenset(kinds.cluster_scoped.values())
    # An object of a definition that is being removed is found no more; it goes with that.
    found = (kinds.find(key) for key in new)
    return sorted(one for one in found if one is not None and one.collection in collections)


def remove_added(cluster: ClusterAccess, before: frozenset[str]) -> None:
    """Delete the objects that were not there before, and return when they are gone."""
    waiting = added(cluster, before)
    removal = Removal(cluster)
    deadline = time.monotonic() + _REMOVAL_TIMEOUT
    with removal.requests.connected():
        while waiting := [one for one in waiting if not removal.remove(one)]:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"still there {_REMOVAL_TIMEOUT:.0f} s after its deletion: {waiting[0]}"
                )
            time.sleep(0.05)


class Removal:
    """Deletes objects, whoever holds them by a finalizer."""

    def __init__(self, cluster: ClusterAccess) -> None:
        self.requests = cluster.requests()
        self._etcd = cluster.etcd_requests()
        self._served: Served | None = None

    def remove(self, found: StoredObject) -> bool:
        """Try to delete an object; True if it is gone.

        Finalizers are removed, because their controller was part of the test.
        """
        if found.collection == _NAMESPACES:
            return self.remove_namespace(found.name)
        return self._delete(found.path)

    def remove_namespace(self, name: str) -> bool:
        """Empty and delete a namespace; True if it is gone.

        The controller manager must not do it: it begins five seconds later, and would continue in
        the next namespace of this name. It ignores a namespace without finalizers; but what it has
        begun, it ends.
        """
        path = f"{_NAMESPACES}/{name}"
        answer = self.requests.send("GET", path)
        if answer.status == 404:
            return True
        if "deletionTimestamp" in answer.json()["metadata"]:
            self._empty(name)
            return False
        self._finalize(name)
        if self._empty(name, without=_RESTORED):
            return False
        self._end(name)
        return self.requests.send("GET", path).status == 404

    def remove_without_pods(self, name: str) -> None:
        """Delete a namespace that has no pods, and its objects."""
        self._finalize(name)
        self._end(name)

    def _finalize(self, name: str) -> None:
        """Take away the namespace's finalizer, so that the controller manager ignores it."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {}}
        self.requests.send("PUT", f"{_NAMESPACES}/{name}/finalize", json.dumps(body).encode())

    def _end(self, name: str) -> None:
        """Delete a namespace without finalizers, and what is in it."""
        path = f"{_NAMESPACES}/{name}"
        self.requests.send("DELETE", path)  # From now on, nothing can be created in it.
        self._empty(name)
        self.requests.send("DELETE", path)

    def has_workloads(self, namespace: str) -> bool:
        """Whether there are pods in a namespace, or objects for which pods are created."""
        return any(key.startswith(_WORKLOADS) for key in stored_keys(self._etcd, namespace))

    def _empty(self, namespace: str, without: tuple[str, ...] = ()) -> int:
        """Delete all objects in a namespace but some; how many there were."""
        options = json.dumps({"gracePeriodSeconds": 1, "propagationPolicy": "Background"}).encode()
        found = self._found(stored_keys(self._etcd, namespace))
        # Events are many, and no event has a finalizer.
        paths = {
            one.collection if one.collection.endswith("/events") else one.path for one in found
        }
        wanted = sorted(path for path in paths if not path.endswith(without))
        for path in wanted:
            self._delete(path, options)
        return len(wanted)

    def _found(self, keys: Iterable[str]) -> list[StoredObject]:
        """The objects of keys, but for those of kinds that are not served any more."""
        keys = list(keys)
        if self._served is None or not all(map(self._served.find, keys)):
            self._served = served(self.requests)
        return [one for one in map(self._served.find, keys) if one is not None]

    def _delete(self, path: str, options: bytes | None = None) -> bool:
        """Delete an object and remove its finalizers; True if it is gone."""
        answer = self.requests.send("DELETE", path, options)
        if answer.status == 404:
            return True
        if answer.ok and answer.json().get("metadata", {}).get("finalizers"):
            patch = json.dumps({"metadata": {"finalizers": None}}).encode()
            self.requests.send("PATCH", path, patch, "application/merge-patch+json")
        return False
