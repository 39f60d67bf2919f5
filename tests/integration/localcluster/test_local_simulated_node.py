"""The node `simulated`: what pods on it do, by their annotation."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.plugin import Kubectl
from quarterdeck.testing.waiting import until


def pod(name: str, simulate: str | None, **spec: Any) -> dict[str, Any]:
    annotations = {} if simulate is None else {"quarterdeck.dev/simulate": simulate}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "example.test/main:1"}], **spec},
    }


def job(name: str, simulate: str | None) -> dict[str, Any]:
    alone = pod("", simulate, restartPolicy="Never")
    annotations = alone["metadata"]["annotations"]
    template = {"metadata": {"annotations": annotations}, "spec": alone["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, "backoffLimit": 0},
    }


class Cluster:
    """Objects in one namespace, and waiting for what becomes of them."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.kubectl = plane.kubectl
        self.namespace = namespace
        self._objects = ApiObjects(plane.requests(), namespace)

    def apply(self, manifest: dict[str, Any]) -> None:
        self._objects.apply(manifest)

    def get(self, what: str) -> Any:
        """The object of `kind/name`, or all of a kind."""
        kind, _, name = what.partition("/")
        return self._objects.get(kind, name) if name else {"items": self._objects.list(kind)}

    def wait_for(self, what: str, condition: Callable[[Any], bool]) -> Any:
        return until(lambda: self.get(what), condition, what)


@pytest.fixture
def cluster(control_plane: ControlPlane, namespace: str) -> Cluster:
    return Cluster(control_plane, namespace)


def is_ready(seen: Any) -> bool:
    conditions = seen["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def container(seen: Any) -> Any:
    return seen["status"].get("containerStatuses", [{"state": {}, "restartCount": 0}])[0]


def test_a_deployment_becomes_available(cluster: Cluster) -> None:
    """The controller manager makes the pods, the scheduler places them, kwok plays them."""
    namespace = cluster.namespace
    cluster.kubectl(
        "create", "deployment", "web", "--image=x", "--replicas=3", "--namespace", namespace
    )
    cluster.kubectl(
        "wait", "deployment/web", "--for=condition=Available", "--timeout=60s", "-n", namespace
    )
    pods = cluster.get("pods")["items"]
    assert {one["spec"]["nodeName"] for one in pods} == {"simulated"}
    assert len({one["status"]["podIP"] for one in pods}) == 3


def test_the_node_is_ready_and_has_the_roles(kubectl: Kubectl) -> None:
    """Real payloads select the role labels and need room."""
    node = json.loads(kubectl("get", "node", "simulated", "-o", "json").stdout)
    assert is_ready(node)
    assert node["spec"].get("taints", []) == []
    assert node["metadata"]["labels"].keys() >= {
        "node-role.kubernetes.io/master",
        "node-role.kubernetes.io/control-plane",
    }
    assert node["status"]["allocatable"]["cpu"] == "10k"


def test_ready_is_the_default_and_fills_init_containers(cluster: Cluster) -> None:
    """Init containers have ended, sidecars run, and the pod is ready."""
    init = [
        {"name": "first", "image": "x"},
        {"name": "sidecar", "image": "x", "restartPolicy": "Always"},
    ]
    cluster.apply(pod("web", None, initContainers=init))
    seen = cluster.wait_for("pod/web", is_ready)
    first, sidecar = seen["status"]["initContainerStatuses"]
    assert first["state"]["terminated"]["exitCode"] == 0
    assert "running" in sidecar["state"]


def test_slow_takes_its_time(cluster: Cluster) -> None:
    """The pod is not ready before its delay is over, and ready after it."""
    slow = pod("slow", "slow")
    slow["metadata"]["annotations"]["quarterdeck.dev/simulate-delay"] = "3s"
    began = time.monotonic()
    cluster.apply(slow)
    cluster.wait_for("pod/slow", is_ready)
    assert time.monotonic() - began >= 3


def test_never_ready_runs_until_it_is_told_otherwise(cluster: Cluster) -> None:
    """The pod runs unready; a changed annotation makes it ready, and unready again."""
    cluster.apply(pod("web", "never-ready"))
    seen = cluster.wait_for("pod/web", lambda seen: "running" in container(seen)["state"])
    assert not is_ready(seen)
    cluster.apply(pod("web", "ready"))
    cluster.wait_for("pod/web", is_ready)
    cluster.apply(pod("web", "never-ready"))
    cluster.wait_for("pod/web", lambda seen: not is_ready(seen))


def test_crash_looping_shows_as_such_and_counts(cluster: Cluster) -> None:
    """The container waits in CrashLoopBackOff, and its restart count grows."""
    cluster.apply(pod("web", "crash-looping"))
    seen = cluster.wait_for("pod/web", lambda seen: container(seen)["restartCount"] >= 2)
    assert container(seen)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert container(seen)["lastState"]["terminated"]["exitCode"] == 1
    assert not is_ready(seen)


@pytest.mark.parametrize(
    ("simulate", "phase", "exit_code"),
    [
        pytest.param("complete", "Succeeded", 0, id="complete ends with success"),
        pytest.param("fail", "Failed", 1, id="fail ends with exit code 1"),
    ],
)
def test_pods_end(cluster: Cluster, simulate: str, phase: str, exit_code: int) -> None:
    cluster.apply(pod("once", simulate, restartPolicy="Never"))
    seen = cluster.wait_for("pod/once", lambda seen: seen["status"]["phase"] == phase)
    assert container(seen)["state"]["terminated"]["exitCode"] == exit_code


@pytest.mark.parametrize(
    ("simulate", "condition"),
    [
        pytest.param(None, "Complete", id="a Job completes by itself"),
        pytest.param("fail", "Failed", id="a Job whose pod fails has failed"),
    ],
)
def test_jobs_end(cluster: Cluster, simulate: str | None, condition: str) -> None:
    cluster.apply(job("once", simulate))
    cluster.kubectl(
        "wait", "job/once", f"--for=condition={condition}", "--timeout=60s", "-n", cluster.namespace
    )


def test_an_unknown_word_is_explained(cluster: Cluster) -> None:
    """The pod waits and says which words there are, in its status and as an event."""
    cluster.apply(pod("web", "redy"))
    seen = cluster.wait_for("pod/web", lambda seen: "waiting" in container(seen)["state"])
    waiting = container(seen)["state"]["waiting"]
    assert waiting["reason"] == "UnknownSimulation"
    assert "crash-looping" in waiting["message"]
    cluster.wait_for(
        "events",
        lambda events: any(one["reason"] == "UnknownSimulation" for one in events["items"]),
    )


def test_a_deleted_pod_is_gone(cluster: Cluster) -> None:
    """kwok confirms the deletion, as a kubelet would."""
    cluster.apply(pod("web", None))
    cluster.wait_for("pod/web", is_ready)
    cluster.kubectl("delete", "pod", "web", "--timeout=60s", "--namespace", cluster.namespace)
