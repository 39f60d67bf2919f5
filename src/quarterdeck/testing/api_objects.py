"""Reads and writes objects of a cluster by kubectl's names for their kinds, without kubectl.

    objects = ApiObjects(control_plane.requests(), "default")
    objects.find("deployment", "web")          # None if there is none
    objects.list("pods", selector="app=web")

A start of kubectl takes about 70 ms of CPU, a request here takes 4 ms. A test that waits looks
twenty times a second, and would slow down the test beside it.
"""

import json
import time
from typing import Any
from urllib.parse import quote

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.api_request import ComponentResponse, Requests
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.testing.discovery import served_resources
from quarterdeck.testing.waiting import PAUSE

_MANAGER = "kubectl"
"""The field manager of kubectl, so that either can remove what the other has applied."""
_DISCOVERY_TIMEOUT = 5.0
"""Seconds to wait for a kind, because discovery lags behind new definitions."""


class _Kind(msgspec.Struct, frozen=True):
    """The paths of the objects of a kind."""

    root: str
    """The path of the group's version: `/apis/apps/v1`."""
    plural: str
    namespaced: bool

    def path(self, namespace: str) -> str:
        within = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{self.root}{within}/{self.plural}"


class ApiObjects:
    """The objects of one namespace, and cluster-scoped ones, as administrator."""

    def __init__(self, requests: Requests, namespace: str) -> None:
        self.namespace = namespace
        self._requests = requests
        self._kinds: dict[str, _Kind] = {}

    def find(self, kind: str, name: str, *, namespace: str = "") -> Any:
        """The object now; None if there is none."""
        answer = self._requests.send("GET", self._path(kind, name, namespace))
        return None if answer.status == 404 else self._checked(answer, f"get {kind} {name}")

    def get(self, kind: str, name: str, *, namespace: str = "") -> Object:
        """The object now; fails if there is none."""
        answer = self._requests.send("GET", self._path(kind, name, namespace))
        found: Object = self._checked(answer, f"get {kind} {name}")
        return found

    def list(self, kind: str, selector: str = "", *, namespace: str = "") -> list[Object]:
        """The objects of a kind in the namespace that match a label selector.

        Each has its kind, as with kubectl.
        """
        path = f"{self._path(kind, '', namespace)}?labelSelector={quote(selector)}"
        found = self._checked(self._requests.send("GET", path), f"get {kind}")
        about = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
        return [about | item for item in found["items"] or ()]

    def apply(self, obj: Object) -> Object:
        """Apply an object by server-side apply with force, and return it."""
        meta, group = obj["metadata"], obj["apiVersion"].rpartition("/")[0]
        kind = f"{obj['kind'].lower()}.{group}" if group else obj["kind"].lower()
        path = self._path(kind, meta["name"], meta.get("namespace", ""))
        query = f"?fieldManager={_MANAGER}&force=true&fieldValidation=Strict"
        applied: Object = self._checked(
            self._requests.send(
                "PATCH", path + query, json.dumps(obj).encode(), "application/apply-patch+yaml"
            ),
            f"apply {kind} {meta['name']}",
        )
        return applied

    def patch(
        self, kind: str, name: str, patch: Object, *, subresource: str = "", namespace: str = ""
    ) -> Object:
        """Change an object or its status by a merge patch, and return it."""
        path = self._path(kind, name, namespace) + (f"/{subresource}" if subresource else "")
        body = json.dumps(patch).encode()
        answer = self._requests.send(
            "PATCH", f"{path}?fieldManager={_MANAGER}-patch", body, "application/merge-patch+json"
        )
        changed: Object = self._checked(answer, f"patch {kind} {name}")
        return changed

    def delete(self, kind: str, name: str, *, namespace: str = "") -> bool:
        """Delete an object, and its dependants in the background; True if there was one."""
        path = f"{self._path(kind, name, namespace)}?propagationPolicy=Background"
        answer = self._requests.send("DELETE", path)
        if answer.status != 404:
            self._checked(answer, f"delete {kind} {name}")
        return answer.status != 404

    def _path(self, kind: str, name: str, namespace: str) -> str:
        collection = self._kind(kind).path(namespace or self.namespace)
        return f"{collection}/{name}" if name else collection

    def _kind(self, word: str) -> _Kind:
        deadline = time.monotonic() + _DISCOVERY_TIMEOUT
        while word not in self._kinds:
            self._kinds = self._discovered()
            if word in self._kinds:
                break
            if time.monotonic() > deadline:
                raise LocalClusterError(f"the API server serves nothing that is called {word}")
            time.sleep(PAUSE)
        return self._kinds[word]

    def _discovered(self) -> dict[str, _Kind]:
        """All served kinds by each name that kubectl knows; the first group and version win."""
        found: dict[str, _Kind] = {}
        for one in served_resources(self._requests):
            kind = _Kind(one.base, one.plural, one.namespaced)
            for word in _words(one.described):
                found.setdefault(word, kind)
                found.setdefault(f"{word}.{one.group}", kind)
        return found

    def _checked(self, answer: ComponentResponse, what: str) -> Any:
        if not answer.ok:
            said = answer.body.decode(errors="replace")
            raise LocalClusterError(f"{what}: {answer.status} {said}")
        return answer.json()


def _words(described: Object) -> set[str]:
    """The names that kubectl has for a resource."""
    return {
        str(described["resource"]),
        str(described.get("singularResource", "")),
        str(described.get("responseKind", {}).get("kind", "")).lower(),
        *(described.get("shortNames") or ()),
    }
