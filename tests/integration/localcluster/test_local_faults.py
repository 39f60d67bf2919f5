"""Control planes of their own for faults: stop, restart, kill, pause, and a crash at the start."""

import asyncio
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.localcluster.errors import (
    AlreadyRunning,
    ComponentCrashed,
    LocalClusterError,
    NotReady,
)
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.plugin import NewControlPlane
from quarterdeck.testing.waiting import eventually, until


@pytest.fixture(scope="module")
def plane(
    control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane for faults that each test repairs."""
    state = tmp_path_factory.mktemp("faults")
    with ControlPlane(state, control_plane_binaries, durable=False) as plane:
        yield plane


def test_the_api_server_restarts_with_its_objects(plane: ControlPlane) -> None:
    """The address stays, and the rest of the cluster goes on working with it."""
    url = plane.url
    plane.kubectl("create", "configmap", "kept")
    plane.restart("kube-apiserver")
    assert plane.url == url
    plane.kubectl("get", "configmap", "kept")
    plane.kubectl("create", "deployment", "web", "--image=x")
    plane.kubectl("wait", "deployment/web", "--for=condition=Available", "--timeout=120s")


def test_a_stopped_api_server_refuses_connections(plane: ControlPlane) -> None:
    plane.stop("kube-apiserver")
    with pytest.raises(ConnectionRefusedError):
        plane.requests().send("GET", "/version")
    plane.start("kube-apiserver")
    assert plane.requests().send("GET", "/version").ok


def test_a_paused_api_server_accepts_and_does_not_answer(plane: ControlPlane) -> None:
    """A silent server, which a client has to notice by itself; then it goes on."""
    plane.pause("kube-apiserver")
    with pytest.raises(TimeoutError):
        plane.requests().send("GET", "/version", timeout=1)
    plane.resume("kube-apiserver")
    plane.wait_ready("kube-apiserver")
    assert plane.requests().send("GET", "/version").ok


def test_everything_comes_back_after_kill_9(plane: ControlPlane) -> None:
    """etcd with --unsafe-no-fsync too: its data is in the kernel, which was not killed."""
    plane.kubectl("create", "configmap", "kept-too")
    plane.kill()
    assert [process.pid for process in plane.processes.values()] == [None] * 5
    plane.start()
    plane.kubectl("get", "configmap", "kept-too")
    plane.kubectl("create", "deployment", "web-too", "--image=x")
    plane.kubectl("wait", "deployment/web-too", "--for=condition=Available", "--timeout=120s")


def test_an_etcd_killed_before_it_was_ever_ready_begins_anew(
    new_control_plane: NewControlPlane,
) -> None:
    """In the moment of the kill that etcd does not recover from: a log that elects nobody."""
    plane = new_control_plane(started=False)
    plane.launch("etcd")
    eventually(lambda: plane.is_ready("etcd"), "etcd is ready")
    plane.kill("etcd")
    (log,) = plane.layout.etcd_data.glob("member/wal/*.wal")
    only_begin(log)
    plane.start("etcd")
    plane.kill("etcd")
    log.write_bytes(b"data of an etcd that was ready is not thrown away")
    with pytest.raises(ComponentCrashed, match="etcd ended"):
        plane.start("etcd")


def only_begin(log: Path) -> None:
    """Leave of etcd's log its first three records: check sum, who it is, and no snapshot."""
    content = log.read_bytes()
    end = 0
    for _ in range(3):
        (header,) = struct.unpack_from("<Q", content, end)
        padding = header >> 56 & 0b111  # in the low bits of the uppermost byte
        end += 8 + (header & (1 << 56) - 1) + padding
    log.write_bytes(content[:end].ljust(len(content), b"\0"))


def test_an_api_server_that_gave_up_on_a_slow_etcd_is_started_again(
    new_control_plane: NewControlPlane,
) -> None:
    """It ends when it has waited 20 s for etcd, which a busy disk can take; here it is killed."""
    plane = new_control_plane(started=False)
    etcd, server = plane.processes["etcd"], plane.processes["kube-apiserver"]
    go = plane.layout.root / "go"
    held_back = f'until [ -e {go} ]; do sleep 0.05; done; exec "$@"'
    etcd.argv = ["/bin/sh", "-c", held_back, "held-back", *etcd.argv]
    starting = threading.Thread(target=plane.start)
    starting.start()
    eventually(lambda: server.pid, "the API server was started")
    server.kill()
    go.touch()
    starting.join()
    assert plane.is_ready("kube-apiserver")


async def test_it_can_be_used_from_asyncio(plane: ControlPlane) -> None:
    """A component that was restarted from a passing thread outlives that thread."""
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


def test_a_component_that_never_gets_ready_is_named(plane: ControlPlane) -> None:
    plane.pause("kube-scheduler")
    with pytest.raises(NotReady, match="kube-scheduler was not ready after 1 s"):
        plane.wait_ready("kube-scheduler", limit=1)
    plane.resume("kube-scheduler")
    plane.wait_ready()


def test_a_state_directory_serves_one_at_a_time(new_control_plane: NewControlPlane) -> None:
    """A second one would issue new certificates under the first one's feet."""
    first = new_control_plane(started=False)
    with pytest.raises(AlreadyRunning, match="runs already"):
        new_control_plane(started=False, state=first.layout.root)
    first.close()
    new_control_plane(started=False, state=first.layout.root)


def test_the_audit_log_shows_who_has_written_what(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Each request is there soon after it was answered, so that a test can count writes."""
    user = f"writer-{namespace}"
    kubeconfig = control_plane.kubeconfig_for(user, ["system:masters"])
    for verb in ("create", "get", "delete"):
        control_plane.kubectl(verb, "configmap", "one", "-n", namespace, kubeconfig=kubeconfig)
    log = control_plane.audit_log
    writes = until(lambda: writes_by(log, user), lambda seen: len(seen) >= 2, "two writes")
    assert [(one.verb, one.resource, one.name) for one in writes] == [
        ("create", "configmaps", "one"),
        ("delete", "configmaps", "one"),
    ]


def test_a_failed_kubectl_says_what_it_was_told(control_plane: ControlPlane) -> None:
    with pytest.raises(LocalClusterError, match=r"kubectl get nonsense failed \(1\): error"):
        control_plane.kubectl("get", "nonsense")
