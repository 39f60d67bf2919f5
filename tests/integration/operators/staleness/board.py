"""The ClusterOperators of a control plane, as tests write and read them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from tests.integration.operators.staleness.repeated import repeated
from tests.objects import cluster_operator, condition
from tests.places import DEPLOY

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.api_request import ComponentResponse
from quarterdeck.status.staleness_marks import is_checking, is_verdict
from quarterdeck.testing.audit import AuditedRequest, writes_by
from quarterdeck.testing.waiting import eventually

RBAC = DEPLOY / "staleness" / "rbac.yaml"
USER = "system:quarterdeck:staleness"
OPERATOR = "their-operator"
TYPES = ("Degraded", "Available", "Progressing", "Upgradeable")
CONDITIONS = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions"
"""Where the definition of ClusterOperator describes them."""
COLLECTION = "/apis/config.openshift.io/v1/clusteroperators"


def conditions(message: str = "all is well", **statuses: str) -> list[Object]:
    """What a healthy operator says, its last transition long ago."""
    fine = {"Available": "True", "Upgradeable": "True"} | statuses
    return [condition(kind, fine.get(kind, "False"), message) for kind in TYPES]


def _words(one: Object) -> tuple[str, str]:
    return one["status"], one["message"]


class Board:
    """Reads and writes ClusterOperators as administrator, under any manager's name."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._requests = plane.requests()
        self._earlier = len(self._writes_so_far())

    def create(self, name: str, said: list[Object] | None = None, **metadata: Any) -> None:
        """A ClusterOperator with these conditions."""
        body = cluster_operator(name)
        body["metadata"] |= metadata
        self._ok(self._requests.send("POST", COLLECTION, json.dumps(body).encode()))
        self.say(name, conditions() if said is None else said)

    def say(self, name: str, said: list[Object], manager: str = OPERATOR, **status: Any) -> Object:
        """Set the conditions, by a merge patch of the status."""
        body = {"status": {"conditions": said, **status}}
        return self._ok(self._patch(name, body, manager)).json()  # type: ignore[no-any-return]

    def apply(self, name: str, said: list[Object], manager: str = OPERATOR) -> None:
        """Set the conditions, by server-side apply with force."""
        path = f"{COLLECTION}/{name}/status?fieldManager={manager}&force=true"
        body = cluster_operator(name) | {"status": {"conditions": said}}
        kind = "application/apply-patch+yaml"
        self._ok(self._requests.send("PATCH", path, json.dumps(body).encode(), kind))

    def takes(self, message: str) -> bool:
        """Whether the API server lets a condition with this message in."""
        body = json.dumps(cluster_operator("trial")).encode()
        self._requests.send("POST", COLLECTION, body)
        taken = self._patch("trial", {"status": {"conditions": conditions(message)}}, OPERATOR).ok
        self.delete("trial")
        return taken

    def fill(self, name: str) -> None:
        """Let it grow until the server takes fewer bytes more than a challenge needs."""
        taken, refused = 1_500_000, 1_600_000  # etcd's limit is 1,572,864
        while refused - taken > 64:
            size = (taken + refused) // 2
            if self._patch(name, {"status": {"extension": {"fill": "x" * size}}}, OPERATOR).ok:
                taken = size
            else:
                refused = size

    def get(self, name: str) -> Object:
        return self._ok(self._requests.send("GET", f"{COLLECTION}/{name}")).json()  # type: ignore[no-any-return]

    def delete(self, name: str) -> None:
        self._ok(self._requests.send("DELETE", f"{COLLECTION}/{name}"))

    def exists(self, name: str) -> bool:
        """Whether it is there."""
        return self._requests.send("GET", f"{COLLECTION}/{name}").ok

    def said(self, name: str) -> list[Object]:
        return self.get(name)["status"]["conditions"]  # type: ignore[no-any-return]

    def owned(self, name: str, manager: str) -> Object | None:
        """What a manager owns under `status.conditions`; None when that is nothing."""
        for entry in self.get(name)["metadata"]["managedFields"]:
            if entry["manager"] == manager:
                return entry["fieldsV1"]["f:status"].get("f:conditions")  # type: ignore[no-any-return]
        return None

    def marks(self, name: str) -> list[str]:
        """For each of the four conditions: '', 'checking' or 'verdict'."""
        return [
            "checking"
            if is_checking(one["message"])
            else "verdict"
            if is_verdict(one["status"], one["message"])
            else ""
            for one in self.said(name)
            if one["type"] in TYPES
        ]

    def wait_challenged(self, name: str) -> None:
        eventually(lambda: self.marks(name) == ["checking"] * 4, f"{name} is challenged")

    def wait_given_up(self, name: str) -> None:
        eventually(lambda: self.marks(name) == ["verdict"] * 4, f"{name} is given up")

    def wait_fine(self, name: str) -> None:
        # An operator whose pod is ready may not lead yet, and its ClusterOperator comes with that.
        eventually(lambda: self.exists(name), f"{name} is there")
        eventually(lambda: self.marks(name) == [""] * 4, f"{name} is fine")

    def writes(self) -> list[AuditedRequest]:
        """What the checkers of this test have written, as the API server counted it."""
        return self._writes_so_far()[self._earlier :]

    def _writes_so_far(self) -> list[AuditedRequest]:
        """All but the checkers' word about themselves, which they renew each minute."""
        said = ("kube-system", "quarterdeck-staleness")
        return [
            request
            for request in writes_by(self.plane.audit_log, USER)
            if not (request.resource == "configmaps" and (request.namespace, request.name) == said)
        ]

    def events(self, name: str) -> list[Object]:
        """The events about this very ClusterOperator, oldest first."""
        selector = f"fieldSelector=regarding.uid%3D{self.get(name)['metadata']['uid']}"
        path = f"/apis/events.k8s.io/v1/namespaces/default/events?{selector}"
        found: list[Object] = self._ok(self._requests.send("GET", path)).json()["items"]
        return sorted(found, key=lambda event: event["eventTime"])

    @contextmanager
    def alive(
        self, name: str, said: list[Object] | None = None, only: Sequence[str] = TYPES
    ) -> Iterator[None]:
        """While this lasts an operator puts its conditions back whenever they are not so.

        It knows of those types `only`, and leaves others as it finds them.
        """
        wanted = {one["type"]: one for one in (conditions() if said is None else said)}

        def reset() -> None:
            found = self.said(name)
            mended = [wanted.get(one["type"], one) if one["type"] in only else one for one in found]
            if [_words(one) for one in found] != [_words(one) for one in mended]:
                self.say(name, mended)

        with repeated(reset, 0.1):
            yield

    @contextmanager
    def renewed(self, name: str) -> Iterator[None]:
        """While this lasts the Lease of that name, in `default`, is renewed."""
        path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": {"holderIdentity": "it", "leaseDurationSeconds": 3},
        }
        self._requests.send("DELETE", f"{path}/{name}")
        self._ok(self._requests.send("POST", path, json.dumps(body).encode()))

        def renew() -> None:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            patch = json.dumps({"spec": {"renewTime": now}}).encode()
            where = f"{path}/{name}?fieldManager=its-holder"
            self._requests.send("PATCH", where, patch, "application/merge-patch+json")

        renew()
        with repeated(renew, 0.3):
            yield

    def patch_definition(self, *operations: Object) -> None:
        """Change the definition of ClusterOperator, by a JSON patch."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        path += "/clusteroperators.config.openshift.io"
        patch = json.dumps(operations).encode()
        self._ok(self._requests.send("PATCH", path, patch, "application/json-patch+json"))

    def set_list_type(self, kind: str) -> None:
        """Make `status.conditions` a map by type or an atomic list, and wait until it is."""
        at = f"{CONDITIONS}/x-kubernetes-list"
        keys = {"op": "add", "path": f"{at}-map-keys", "value": ["type"]}
        if kind == "atomic":
            keys = {"op": "remove", "path": f"{at}-map-keys"}
        self.patch_definition({"op": "replace", "path": f"{at}-type", "value": kind}, keys)

        def served() -> bool:
            try:
                self.create("trial")
                owned = self.owned("trial", OPERATOR)
            except AssertionError:
                return False  # 503: the storage of the old definition was just taken down
            finally:
                self._requests.send("DELETE", f"{COLLECTION}/trial")
            return (owned == {}) is (kind == "atomic")

        eventually(served, f"conditions are {kind}")

    def _patch(self, name: str, body: Object, manager: str) -> ComponentResponse:
        path = f"{COLLECTION}/{name}/status?fieldManager={manager}"
        return self._requests.send(
            "PATCH", path, json.dumps(body).encode(), "application/merge-patch+json"
        )

    def _ok(self, answer: ComponentResponse) -> ComponentResponse:
        assert answer.ok, answer.body.decode()
        return answer
