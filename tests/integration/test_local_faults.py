"""Control planes of their own for faults: stop, restart, kill, pause, and a crash at the start."""

import asyncio
import json
import threading

import pytest

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.errors import (
    AlreadyRunning,
    ComponentCrashed,
    LocalClusterError,
    NotReady,
)
from quarterdeck.testing.plugin import NewControlPlane


def test_the_api_server_restarts_with_its_objects(new_control_plane: NewControlPlane) -> None:
    """The address stays, and the rest of the cluster goes on working with it."""
    plane = new_control_plane()
    url = plane.url
    plane.kubectl("create", "configmap", "kept")
    plane.restart("kube-apiserver")
    assert plane.url == url
    plane.kubectl("get", "configmap", "kept")
    plane.kubectl("create", "deployment", "web", "--image=x")
    plane.kubectl("wait", "deployment/web", "--for=condition=Available", "--timeout=120s")


def test_a_stopped_api_server_refuses_connections(new_control_plane: NewControlPlane) -> None:
    plane = new_control_plane()
    plane.stop("kube-apiserver")
    with pytest.raises(ConnectionRefusedError):
        plane.requests().send("GET", "/version")
    plane.start("kube-apiserver")
    assert plane.requests().send("GET", "/version").ok


def test_a_paused_api_server_accepts_and_does_not_answer(
    new_control_plane: NewControlPlane,
) -> None:
    """A silent server, which a client has to notice by itself; then it goes on."""
    plane = new_control_plane()
    plane.pause("kube-apiserver")
    with pytest.raises(TimeoutError):
        plane.requests().send("GET", "/version", timeout=1)
    plane.resume("kube-apiserver")
    plane.wait_ready("kube-apiserver")
    assert plane.requests().send("GET", "/version").ok


def test_everything_comes_back_after_kill_9(new_control_plane: NewControlPlane) -> None:
    """etcd with --unsafe-no-fsync too: its data is in the kernel, which was not killed."""
    plane = new_control_plane()
    plane.kubectl("create", "configmap", "kept")
    plane.kill()
    assert [process.pid for process in plane.processes.values()] == [None] * 5
    plane.start()
    plane.kubectl("get", "configmap", "kept")
    plane.kubectl("create", "deployment", "web", "--image=x")
    plane.kubectl("wait", "deployment/web", "--for=condition=Available", "--timeout=120s")


async def test_it_can_be_used_from_asyncio(new_control_plane: NewControlPlane) -> None:
    """A component that was restarted from a passing thread outlives that thread."""
    plane = await asyncio.to_thread(new_control_plane)
    thread = threading.Thread(target=plane.restart, args=("kube-scheduler",))
    thread.start()
    await asyncio.to_thread(thread.join)
    assert plane.is_ready("kube-scheduler")


def test_a_component_that_crashes_shows_its_last_words(
    new_control_plane: NewControlPlane,
) -> None:
    """The error names the component, and carries the end of its log below the traceback."""
    plane = new_control_plane(started=False)
    plane.processes["kube-apiserver"].argv.append("--no-such-option")
    with pytest.raises(ComponentCrashed, match="kube-apiserver ended with exit code") as caught:
        plane.start()
    assert "no-such-option" in caught.value.log
    assert caught.value.log in caught.value.__notes__


def test_a_component_that_never_gets_ready_is_named(new_control_plane: NewControlPlane) -> None:
    plane = new_control_plane()
    plane.pause("kube-scheduler")
    with pytest.raises(NotReady, match="kube-scheduler was not ready after 1 s"):
        plane.wait_ready("kube-scheduler", limit=1)


def test_a_state_directory_serves_one_at_a_time(new_control_plane: NewControlPlane) -> None:
    """A second one would issue new certificates under the first one's feet."""
    first = new_control_plane(started=False)
    with pytest.raises(AlreadyRunning, match="runs already"):
        new_control_plane(started=False, state=first.layout.root)
    first.close()
    new_control_plane(started=False, state=first.layout.root)


def test_the_audit_log_counts_writes(control_plane: ControlPlane, namespace: str) -> None:
    """Each request is a line when it has been answered: who, what, and on which object."""

    def writes() -> list[str]:
        lines = control_plane.audit_log.read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        return [
            entry["verb"]
            for entry in entries
            if entry.get("objectRef", {}).get("namespace") == namespace
            and entry["user"]["username"] == "quarterdeck-admin"
            and entry["verb"] not in ("get", "list", "watch")
        ]

    control_plane.kubectl("create", "configmap", "one", "-n", namespace)
    control_plane.kubectl("get", "configmap", "one", "-n", namespace)
    control_plane.kubectl("delete", "configmap", "one", "-n", namespace)
    assert writes()[-2:] == ["create", "delete"]


def test_a_failed_kubectl_says_what_it_was_told(control_plane: ControlPlane) -> None:
    with pytest.raises(LocalClusterError, match=r"kubectl get nonsense failed \(1\): error"):
        control_plane.kubectl("get", "nonsense")
