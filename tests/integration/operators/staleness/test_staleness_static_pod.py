"""The checker as its static pod, the sample operator from its Deployment, on one cluster.

The tests of this file share a control plane of their own: its node starts crashed containers
again within a second, and the last test stops most of it.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.integration.operators.staleness.board import Board
from tests.integration.pods import needs_bubblewrap
from tests.places import DEPLOY

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.localcluster.operators import deploy_operator
from quarterdeck.testing.answer_monitor import AnswerMonitor
from quarterdeck.testing.plugin import remember_slowest
from quarterdeck.testing.this_machine import ThisMachine
from quarterdeck.testing.waiting import eventually

pytestmark = [
    pytest.mark.slow,
    needs_bubblewrap,
]

NAMESPACE, POD = "kube-system", "staleness-this-machine"
SAMPLE = "quarterdeck-sample"
LEASE = ("--lease-duration=3", "--renew-deadline=2", "--retry-period=0.5")


@pytest.fixture(scope="module")
def plane(
    control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane with the node this-machine, whose back-off is at most a second."""
    state = tmp_path_factory.mktemp("staleness")
    plane = ControlPlane(state, control_plane_binaries, durable=False, audit=True)
    plane.add_this_machine(["--back-off-first=0.5", "--back-off-maximum=1"])
    with plane:
        install_own_definitions(plane.requests())
        yield plane


@pytest.fixture(scope="module")
def cluster_answer_monitor(
    plane: ControlPlane, pytestconfig: pytest.Config
) -> Iterator[AnswerMonitor]:
    """Follows the operators of this file's own cluster."""
    with AnswerMonitor(plane.kubeconfig) as monitor:
        yield monitor
        remember_slowest(pytestconfig, monitor.slowest)


@pytest.fixture(scope="module")
def sample(plane: ControlPlane) -> ThisMachine:
    """The sample operator with one replica, which has reported how it is."""
    node = ThisMachine(plane, SAMPLE)
    plane.kubectl("apply", "--server-side", f"--filename={DEPLOY / 'sample' / 'rbac.yaml'}")
    deployment = yaml.safe_load((DEPLOY / "sample" / "deployment.yaml").read_text())
    deployment["spec"]["replicas"] = 1
    # A quick lease: one that was killed is replaced when its lease has run out.
    deployment["spec"]["template"]["spec"]["containers"][0]["args"] += LEASE
    node.apply(deployment)
    node.wait_rolled_out("sample-operator")
    return node


@pytest.fixture
def board(plane: ControlPlane) -> Board:
    return Board(plane)


def statuses(board: Board, name: str) -> list[str]:
    return [one["status"] for one in board.said(name)]


def stale_events(board: Board) -> int:
    return [event["reason"] for event in board.events("sample")].count("OperatorStale")


def run_checker(plane: ControlPlane, seconds: int) -> None:
    """Have the static pod run with this interval; another one makes it another pod."""
    deploy_operator(plane, "staleness", args=[f"--interval={seconds}s", "--grace=0s"])
    node, wanted = ThisMachine(plane, NAMESPACE), f"--interval={seconds}s"

    def runs() -> bool:
        if not (pods := [p for p in node.list("pods") if p["metadata"]["name"] == POD]):
            return False
        ready = [
            c["status"] for c in pods[0]["status"].get("conditions") or [] if c["type"] == "Ready"
        ]
        return wanted in pods[0]["spec"]["containers"][0]["args"] and ready == ["True"]

    node.wait(runs)


def pod_of(node: ThisMachine) -> Object:
    (pod,) = [
        pod
        for pod in node.list("pods", "app=sample-operator")
        if "deletionTimestamp" not in pod["metadata"]
    ]
    return pod


def restarts(node: ThisMachine) -> int:
    return int(pod_of(node)["status"]["containerStatuses"][0]["restartCount"])


def kill(node: ThisMachine) -> None:
    """Kill the sample operator's process with -9: the one with the pod's name."""
    name = f"POD_NAME={pod_of(node)['metadata']['name']}".encode()
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                words = (directory / "environ").read_bytes().split(b"\0")
                program = (directory / "cmdline").read_bytes().split(b"\0")[0]
            except OSError:
                continue
            if name in words and b"bwrap" not in program:
                found.append(int(directory.name))
    assert found
    for pid in found:
        os.kill(pid, signal.SIGKILL)


def kill_and_wait_for_the_answer(node: ThisMachine, board: Board) -> None:
    before, asked = restarts(node), len(board.writes())
    kill(node)
    eventually(lambda: restarts(node) > before, "its node starts it again")
    eventually(lambda: len(board.writes()) > asked, "it is asked")
    board.wait_fine("sample")


@pytest.mark.usefixtures("answer_monitor")
def test_a_deployment_scaled_to_zero_goes_through_both_messages_and_recovers(
    plane: ControlPlane, sample: ThisMachine, board: Board
) -> None:
    """All four conditions end Unknown; scaled up it puts everything back by itself."""
    board.wait_fine("sample")
    fine = [(one["type"], one["status"], one["message"]) for one in board.said("sample")]
    run_checker(plane, 3)
    sample.kubectl("scale", "deployment/sample-operator", "--replicas=0")
    board.wait_challenged("sample")
    board.wait_given_up("sample")
    assert statuses(board, "sample") == ["Unknown"] * 4
    sample.kubectl("scale", "deployment/sample-operator", "--replicas=1")
    eventually(
        lambda: (
            [(one["type"], one["status"], one["message"]) for one in board.said("sample")] == fine
        ),
        "everything is as it was",
        limit=120,
    )
    eventually(
        lambda: (
            [event["reason"] for event in board.events("sample")]
            == ["OperatorStale", "OperatorRecovered"]
        ),
        "both turns are told",
    )


@pytest.mark.usefixtures("answer_monitor")
def test_an_operator_killed_once_in_every_interval_is_never_given_up(
    plane: ControlPlane, sample: ThisMachine, board: Board
) -> None:
    """Each time its node starts it again, and it answers before the interval is over.

    It needs about five seconds for that, three of them until the Lease of the killed one is over.
    """
    board.wait_fine("sample")
    earlier = stale_events(board)
    run_checker(plane, 12)
    for _ in range(2):
        kill_and_wait_for_the_answer(sample, board)
        assert "Unknown" not in statuses(board, "sample")
    assert stale_events(board) == earlier


def test_with_everything_stopped_but_etcd_the_api_server_and_the_node_it_still_reports(
    plane: ControlPlane, board: Board
) -> None:
    """The document's own case: nothing runs that was not static, and no operator says so."""
    run_checker(plane, 3)
    board.create("orphan")
    plane.stop("kube-controller-manager", "kube-scheduler", "kwok")
    ThisMachine(plane, SAMPLE).kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    board.wait_given_up("orphan")
    assert statuses(board, "orphan") == ["Unknown"] * 4
