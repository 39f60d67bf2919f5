"""A cluster with metal3, as an administrator and the tests see it."""

import base64
import json
from collections.abc import Iterable, Mapping
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, TypeAlias

from quarterdeck.api.meta import Object
from quarterdeck.delivery.manifests import own_objects
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.operators import find_operator
from quarterdeck.metal3.deployment import template_hash
from quarterdeck.metal3.names import (
    BAREMETAL_OWNS,
    MACHINE_API_OWNS,
    NAMESPACE,
    PASSWORD_SECRET,
)
from quarterdeck.status.staleness_marks import checking_message, is_checking
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.audit import AuditedRequest, writes_by
from quarterdeck.testing.waiting import eventually

LIMIT = 60.0
"""Seconds for what takes a few on an idle machine."""
CHECKSUM = "0123456789abcdef" * 4
SPEC = {
    "provisioningNetwork": "Managed",
    "provisioningInterface": "ens3",
    "provisioningIP": "172.30.20.3",
    "provisioningNetworkCIDR": "172.30.20.0/24",
    "provisioningDHCPRange": "172.30.20.11, 172.30.20.101",
    "provisioningOSDownloadURL": f"https://images.example.test/os.qcow2.gz?sha256={CHECKSUM}",
}
ACCOUNTS = {"machine-api": "machine-api-operator", "baremetal": "cluster-baremetal-operator"}
PROVISIONING = "provisioning-configuration"
LEFT = "example.test/left"


Print: TypeAlias = tuple[str, list[tuple[str, int]]]
"""The hash of a pod template; the uid and the restarts of each pod."""


def user(operator: str) -> str:
    """The name of an operator's account in the audit log."""
    return f"system:serviceaccount:{NAMESPACE}:{ACCOUNTS[operator]}"


def owned_by(deployment: Object) -> list[str]:
    """By which annotations a Deployment is claimed."""
    found = deployment["metadata"].get("annotations") or {}
    return [name for name in (MACHINE_API_OWNS, BAREMETAL_OWNS) if name in found]


def restarts(pod: Object) -> int:
    """How often containers of the pod were restarted, together."""
    statuses = pod.get("status", {})
    fields = ("containerStatuses", "initContainerStatuses")
    return sum(one["restartCount"] for field in fields for one in statuses.get(field) or ())


def intrusions(writes: Iterable[AuditedRequest]) -> list[str]:
    """The writes of an operator to a Deployment that the other one had, as `user verb uri`.

    `writes` are in their order. An operator may write after the other one only to claim. The log
    has no bodies, but a claim is the only patch of the two that is no apply.
    """
    return [
        f"{one.user} {one.verb} {one.uri}"
        for before, one in pairwise(writes)
        if one.user != before.user and (one.verb != "patch" or one.is_apply)
    ]


def turns(names: Iterable[str]) -> list[str]:
    """The names without repetitions: who had it, one after the other."""
    return [name for name, _ in groupby(names)]


class Metal:
    """The objects around metal3."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.objects = ApiObjects(plane.requests(), NAMESPACE)

    def deliver(self) -> None:
        """Bring what a release brings beside the operators: metal3's account and its images."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self.objects.apply(namespace)
        for name in ("machine-api", "baremetal"):
            for one in own_objects(find_operator(name)):
                self.objects.apply(one)

    def set_platform(self, platform: str) -> None:
        """Write the platform into the Infrastructure's status."""
        infrastructure = {
            "apiVersion": "config.openshift.io/v1",
            "kind": "Infrastructure",
            "metadata": {"name": "cluster"},
            "spec": {},
        }
        self.objects.apply(infrastructure)
        status = {"status": {"platform": platform, "platformStatus": {"type": platform}}}
        self.objects.patch("infrastructure", "cluster", status, subresource="status")

    def provision(self, **changes: Any) -> None:
        """Create or change the Provisioning; None leaves a field out."""
        spec = {name: value for name, value in {**SPEC, **changes}.items() if value is not None}
        self.objects.apply(
            {
                "apiVersion": "metal3.io/v1alpha1",
                "kind": "Provisioning",
                "metadata": {"name": PROVISIONING},
                "spec": spec,
            }
        )

    def deployment(self) -> Any:
        """metal3's Deployment; None without one."""
        return self.objects.find("deployment", "metal3")

    def annotations(self) -> list[str]:
        """By which annotations the Deployment is claimed."""
        return owned_by(self.deployment() or {"metadata": {}})

    def is_owned_by_baremetal(self) -> bool:
        """Whether the baremetal operator's annotation is the only one."""
        return self.annotations() == [BAREMETAL_OWNS]

    def owners(self) -> set[str]:
        """The operators that have fields of the Deployment."""
        entries = self.deployment()["metadata"]["managedFields"]
        found = {one["manager"] for one in entries if not one.get("subresource")}
        return {one for one in found if one.startswith("quarterdeck-")}

    def leave_a_label(self, operator: str) -> None:
        """Have an operator apply one field more, which the other one does not want."""
        live = self.deployment()
        fields = ("name", "namespace", "annotations", "ownerReferences")
        kept = {field: live["metadata"][field] for field in fields}
        labels = {**live["metadata"]["labels"], LEFT: "over"}
        more = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {**kept, "labels": labels},
            "spec": live["spec"],
        }
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/metal3"
        query = f"?fieldManager=quarterdeck-{operator}&force=true"
        answer = self.plane.requests().send(
            "PATCH", path + query, json.dumps(more).encode(), "application/apply-patch+yaml"
        )
        assert answer.ok, answer.body
        assert self.has_left_label()

    def has_left_label(self) -> bool:
        """Whether that field is there."""
        return LEFT in self.deployment()["metadata"]["labels"]

    def pods(self) -> list[Object]:
        """metal3's pods that stay."""
        found = self.objects.list("pods", "quarterdeck.dev/operand=metal3")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def print(self) -> Print:
        """What a handover leaves alone: the pod template, the pods, and their containers."""
        pods = [(pod["metadata"]["uid"], restarts(pod)) for pod in self.pods()]
        return template_hash(self.deployment()), pods

    def password(self) -> str:
        """The password in the Secret."""
        secret = self.objects.get("secret", PASSWORD_SECRET)
        return base64.b64decode(secret["data"]["password"]).decode()

    def assert_the_password_is_in_no_output(self, *logs: Path) -> None:
        """Search all that anybody can read but the Secret: objects, events, logs, the audit log."""
        objects = {
            kind: self.plane.requests().send("GET", path).body.decode()
            for kind, path in {
                "ClusterOperators": "/apis/config.openshift.io/v1/clusteroperators",
                "Provisionings": "/apis/metal3.io/v1alpha1/provisionings",
                "Deployments": "/apis/apps/v1/deployments",
                "ReplicaSets": "/apis/apps/v1/replicasets",
                "Pods": "/api/v1/pods",
                "ConfigMaps": "/api/v1/configmaps",
                "events": "/apis/events.k8s.io/v1/events",
            }.items()
        }
        assert '"Claimed"' in objects["events"]  # it is the right place to search
        of_pods = (self.plane.layout.root / "pods").glob("*/logs/*/*.log")
        written = [*logs, *self.plane.audit_log.parent.iterdir(), *of_pods]
        assert self.plane.audit_log in written
        texts = objects | {str(path): path.read_text(errors="replace") for path in written}
        password = self.password()
        encoded = base64.b64encode(password.encode()).decode()
        found = [where for where, text in texts.items() if password in text or encoded in text]
        assert found == []

    def conditions(self, operator: str = "baremetal") -> dict[str, tuple[str, str, str]]:
        """By type: status, reason and message."""
        found = self.objects.find("clusteroperator", operator) or {}
        return {
            one["type"]: (one["status"], one["reason"], one["message"])
            for one in (found.get("status") or {}).get("conditions") or []
        }

    def told(self) -> tuple[str, str, str, bool]:
        """What the Provisioning says of itself, and whether it is about its present generation."""
        found = self.objects.get("provisioning", PROVISIONING)
        status = found.get("status") or {}
        for one in status.get("conditions") or []:
            if one["type"] == "Valid":
                current = status["observedGeneration"] == found["metadata"]["generation"]
                return one["status"], one["reason"], one.get("message", ""), current
        return "", "", "", False

    def wait(self, wanted: Mapping[str, str], operator: str = "baremetal") -> None:
        """Return when the conditions have these statuses, or these reasons."""

        def look() -> bool:
            seen = self.conditions(operator)
            return all(
                type_ in seen and value in seen[type_][:2] for type_, value in wanted.items()
            )

        try:
            eventually(look, f"{operator}: {wanted}", LIMIT)
        except AssertionError as error:
            raise AssertionError(f"{error}; seen: {self.conditions(operator)}") from error

    def wait_running(self, operator: str = "baremetal") -> None:
        """Return when metal3 runs, as its operator says."""
        wanted = {"Progressing": "False", "Degraded": "False"}
        self.wait({**wanted, "Available": "DeployComplete"}, operator)

    def challenge(self, operator: str = "baremetal") -> None:
        """Write a staleness challenge, and return when it is answered."""
        found = self.objects.get("clusteroperator", operator)
        conditions = found["status"]["conditions"]
        for one in conditions:
            one["message"] = checking_message(one["message"])
        status = {"status": {"conditions": conditions}}
        self.objects.patch("clusteroperator", operator, status, subresource="status")

        def marked() -> bool:
            return any(is_checking(one[2]) for one in self.conditions(operator).values())

        eventually(lambda: not marked(), f"{operator} answers", LIMIT)

    def writes(self, operator: str) -> list[AuditedRequest]:
        """The writes of an operator so far."""
        return writes_by(self.plane.audit_log, user(operator))

    def deployment_writes(self, operator: str) -> list[AuditedRequest]:
        """The writes of an operator to metal3's Deployment that succeeded."""
        return [
            one
            for one in self.writes(operator)
            if one.resource == "deployments" and one.name in ("metal3", "") and one.code < 400
        ]

    def writes_in_order(self, since: str) -> list[AuditedRequest]:
        """The writes of both operators to metal3's Deployment that succeeded, in their order.

        `since` is a time of the audit log. The order is that in which the server received them,
        not that of the log's lines, which are written when a request ends: each of these writes is
        fenced by the version before, so it is sent after that one was stored.
        """
        found = [one for name in ACCOUNTS for one in self.deployment_writes(name)]
        return sorted((one for one in found if one.received > since), key=lambda one: one.received)

    def versions_since(self, version: str) -> list[Object]:
        """Every version of metal3's Deployment after this resource version, from the server."""
        query = f"watch=true&resourceVersion={version}&fieldSelector=metadata.name%3Dmetal3"
        # The server sends what it has at once, and ends after a second.
        path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments?{query}&timeoutSeconds=1"
        answer = self.plane.requests().send("GET", path, timeout=LIMIT)
        assert answer.ok, answer.body
        events = [json.loads(line) for line in answer.body.splitlines()]
        assert {one["type"] for one in events} <= {"ADDED", "MODIFIED"}, events
        return [one["object"] for one in events]

    def annotate_pods(self, behaviour: str) -> None:
        """Have the simulated node treat the pods so."""
        for pod in self.pods():
            patch = {"metadata": {"annotations": {"quarterdeck.dev/simulate": behaviour}}}
            self.objects.patch("pod", pod["metadata"]["name"], patch)

    def clean_up(self) -> None:
        """Remove metal3 and everything around it."""
        for operator in ACCOUNTS:
            self.objects.delete("clusteroperator", operator)
        self.objects.delete("provisioning", PROVISIONING)
        self.objects.delete("infrastructure", "cluster")
        self.objects.delete("secret", PASSWORD_SECRET)
        self.objects.delete("deployment", "metal3")
        for account in ACCOUNTS.values():
            self.objects.delete("deployment", account)
        eventually(lambda: not self.deployment(), "metal3 is gone", LIMIT)
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods?gracePeriodSeconds=0"
        assert self.plane.requests().send("DELETE", pods).ok
        eventually(lambda: not self.objects.list("pods"), "the pods are gone", LIMIT)
