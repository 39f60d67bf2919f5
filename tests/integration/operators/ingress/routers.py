"""IngressControllers as an administrator sees and changes them, and their operator's writes."""

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.ingress_controllers import HOME, ROUTERS, ingress_controller

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.audit import AuditedRequest, writes_by
from quarterdeck.testing.operator_process import OperatorProcess
from quarterdeck.testing.waiting import eventually, until

IMAGE = "example.test/router:1"
"""A foreign name: the pods are simulated."""
USER = f"system:serviceaccount:{HOME}:ingress-operator"
RECONCILES = 'controller_runtime_reconcile_total{{controller="ingress-controller",result="{}"}}'
OWNER = "ingresscontroller.operator.openshift.io/owning-ingresscontroller"


class Routers:
    """The IngressControllers of a control plane, and the objects that were made for them."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.objects = ApiObjects(plane.requests(), ROUTERS)

    def apply(self, name: str, annotations: Object | None = None, **spec: Any) -> Object:
        """Apply an IngressController with one replica, unless it is said otherwise."""
        given = {field: value for field, value in spec.items() if value is not None}
        obj = ingress_controller(name, annotations, **{"replicas": 1, **given})
        return self.objects.apply(obj)

    def get(self, name: str) -> Object:
        """The IngressController."""
        return self.objects.get("ingresscontroller", name, namespace=HOME)

    def deployment(self, name: str) -> Any:
        """The router's Deployment; None if there is none."""
        return self.objects.find("deployment", f"router-{name}")

    def patch_deployment(self, name: str, patch: Object) -> None:
        """Change the Deployment as another field manager."""
        self.objects.patch("deployment", f"router-{name}", patch)

    def simulate(self, name: str, behaviour: str) -> None:
        """Let the pods of an IngressController without replicas behave like this."""
        annotations = {"quarterdeck.dev/simulate": behaviour}
        template = {"metadata": {"annotations": annotations}}
        self.patch_deployment(name, {"spec": {"template": template}})

    def replica_sets(self, name: str) -> set[str]:
        """The names of the ReplicaSets of a router that have pods, or are to have some."""
        label = f"ingresscontroller.operator.openshift.io/deployment-ingresscontroller={name}"
        found = self.objects.list("replicasets", label)
        return {one["metadata"]["name"] for one in found if one["spec"]["replicas"]}

    def pods(self, name: str) -> list[Object]:
        """The pods of a router."""
        label = f"ingresscontroller.operator.openshift.io/deployment-ingresscontroller={name}"
        return self.objects.list("pods", label)

    def made(self, name: str) -> set[str]:
        """The kind and name of every object that was made for an IngressController."""
        kinds = ("deployments", "services", "configmaps", "ingressclasses")
        return {
            f"{one['kind']} {one['metadata']['name']}"
            for kind in kinds
            for one in self.objects.list(kind, f"{OWNER}={name}")
        }

    def condition(self, name: str, type_: str) -> Object | None:
        """A condition of an IngressController, if the status is about its latest generation."""
        found = self.get(name)
        status = found.get("status") or {}
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            return None
        conditions = status.get("conditions") or ()
        return next((one for one in conditions if one["type"] == type_), None)

    def wait_condition(self, name: str, type_: str, status: str, reason: str = "") -> Object:
        """Wait until a condition has this status, and this reason if one is given."""

        def holds(found: Object | None) -> bool:
            return (
                found is not None
                and found["status"] == status
                and reason in ("", found.get("reason"))
            )

        found = until(lambda: self.condition(name, type_), holds, f"{name} {type_}={status}")
        assert found is not None
        return found

    def wait_settled(self, name: str) -> None:
        """Wait until a router is rolled out, and its status says so."""
        self.wait_condition(name, "Available", "True")
        self.wait_condition(name, "Progressing", "False")

    def wait_rolled_out(self, name: str) -> None:
        """Wait until all pods of a router are those of the latest template."""

        def is_done(live: Object) -> bool:
            status, wanted = live.get("status") or {}, live["spec"]["replicas"]
            counts = [status.get(it, 0) for it in ("replicas", "updatedReplicas")]
            observed = status.get("observedGeneration") == live["metadata"]["generation"]
            return observed and counts == [wanted, wanted] and len(self.pods(name)) == wanted

        until(lambda: self.deployment(name), is_done, f"{name} is rolled out")
        self.wait_settled(name)

    def writes(self) -> list[AuditedRequest]:
        """What the operator has written so far."""
        return writes_by(self.plane.audit_log, USER)

    def reconciles(self, operator: OperatorProcess) -> float:
        """The reconciles of the operator that have ended."""
        kinds = ("success", "error", "requeue_after")
        return sum(operator.metric(RECONCILES.format(kind)) for kind in kinds)

    def writes_of_a_reconcile(self, operator: OperatorProcess, *names: str) -> list[str]:
        """What the operator writes when these IngressControllers are reconciled once more.

        Without its ClusterOperator, which follows a second later.
        """
        before, done = len(self.writes()), self.reconciles(operator)
        for name in names:
            mark = {"metadata": {"annotations": {"example.test/seen": str(done)}}}
            self.objects.patch("ingresscontroller", name, mark, namespace=HOME)
        eventually(lambda: self.reconciles(operator) >= done + len(names), "reconciled again")
        return [
            f"{it.verb} {it.resource} {it.name}"
            for it in self.writes()[before:]
            if it.resource != "clusteroperators/status"
        ]

    def wait_fixed_point(self, operator: OperatorProcess, *names: str) -> None:
        """Wait until two more reconciles in a row write nothing; pods may still come and go now."""

        def look() -> list[str]:
            twice = (self.writes_of_a_reconcile(operator, *names) for _ in range(2))
            return [write for writes in twice for write in writes]

        until(look, lambda writes: not writes, "a reconcile writes nothing")

    def refusals(self) -> list[AuditedRequest]:
        """The writes for which the operator has no right."""
        return [it for it in self.writes() if it.code == 403]

    def delete(self, name: str) -> None:
        """Delete an IngressController, and do not wait."""
        self.objects.delete("ingresscontroller", name, namespace=HOME)

    def is_gone(self, name: str) -> bool:
        """Whether nothing of an IngressController is left."""
        left = self.objects.find("ingresscontroller", name, namespace=HOME)
        return left is None and not self.made(name) and not self.pods(name)

    def operator_condition(self, type_: str) -> Object:
        """A condition of the ClusterOperator `ingress`; empty if there is none."""
        found = self.objects.find("clusteroperator", "ingress") or {}
        conditions = (found.get("status") or {}).get("conditions") or ()
        return next((one for one in conditions if one["type"] == type_), {})

    def remove_all(self) -> None:
        """Delete all IngressControllers and what was made for them, with or without an operator."""
        for one in self.objects.list("ingresscontrollers", namespace=HOME):
            name = one["metadata"]["name"]
            self.delete(name)
            if self.objects.find("ingresscontroller", name, namespace=HOME) is not None:
                # Deleted, so no operator adds the finalizer again; but one may remove it.
                with suppress(LocalClusterError):
                    self.objects.patch(
                        "ingresscontroller",
                        name,
                        {"metadata": {"finalizers": None}},
                        namespace=HOME,
                    )
        for kind in ("deployments", "services", "configmaps", "ingressclasses"):
            for one in self.objects.list(kind, OWNER):
                self.objects.delete(kind, one["metadata"]["name"])
        eventually(lambda: not self.objects.list("pods"), "no pods are left")


def as_text(obj: Object) -> str:
    """The object for kubectl."""
    return json.dumps(obj)


def on_host(ports: list[int]) -> Object:
    """A strategy with these ports of the machine."""
    names = ("httpPort", "httpsPort", "statsPort")
    return {"type": "HostNetwork", "hostNetwork": dict(zip(names, ports, strict=True))}


def request(port: int, path: str, **headers: str) -> int:
    """The status of a request to a port of this machine."""
    return request_to("127.0.0.1", port, path, **headers)


def request_to(address: str, port: int, path: str, **headers: str) -> int:
    """The status of a request to an address of this machine."""
    asked = urllib.request.Request(f"http://{address}:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(asked, timeout=30) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def logs(plane: ControlPlane, name: str, container: str) -> list[str]:
    """The lines of a container of a router, or of a pod."""
    arguments = ("logs", name, f"--container={container}", f"--namespace={ROUTERS}")
    return plane.kubectl(*arguments).stdout.splitlines()


def kill_in_pod(plane: ControlPlane, pod: Object, is_it: Callable[[list[bytes]], bool]) -> None:
    """Kill a process of a pod by the words of its command line, as the kernel without memory."""
    volume = str(plane.layout.pods / pod["metadata"]["uid"])
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended since
            words = (path / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            if is_it(words) and volume in (path / "mountinfo").read_text():
                os.kill(int(path.name), signal.SIGKILL)


def restarts(pod: Object, container: str = "logs") -> int:
    """How often a container of a pod was started again."""
    statuses = pod["status"]["containerStatuses"]
    return next(int(one["restartCount"]) for one in statuses if one["name"] == container)
