"""An operator whose API server goes away, on a control plane of the test's own."""

import json
import signal

import pytest
from tests.objects import note

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.testing.operator_process import OwnOperators, StartOperator
from quarterdeck.testing.plugin import NewControlPlane
from quarterdeck.testing.waiting import eventually

NAMESPACE = "quarterdeck-sample"
"""The only one in which the delivered sample may work."""


@pytest.fixture
def plane(new_control_plane: NewControlPlane) -> ControlPlane:
    """Only etcd and the API server, with the resource types."""
    made = new_control_plane(started=False)
    made.start("etcd", "kube-apiserver")
    install_own_definitions(made.requests())
    return made


@pytest.fixture
def run_sample_on(plane: ControlPlane, own_operators: OwnOperators) -> StartOperator:
    return own_operators(plane, "sample")


def write_note(plane: ControlPlane, name: str) -> None:
    plane.kubectl("apply", "-f", "-", input=json.dumps(note(name, name, NAMESPACE)))


def wait_written(plane: ControlPlane, name: str) -> None:
    def written() -> bool:
        get = ("get", "configmap", name, f"--namespace={NAMESPACE}")
        answer = plane.kubectl(*get, "--output=jsonpath={.data.text}", check=False)
        return answer.stdout == name

    eventually(written, f"ConfigMap {name}")


def test_work_goes_on_after_the_api_server_was_killed(
    plane: ControlPlane, run_sample_on: StartOperator
) -> None:
    """A leader that finds its server again in time goes on leading, and loses nothing."""
    operator = run_sample_on("--leader-elect", "--lease-duration=90", "--renew-deadline=60")
    operator.logged("leading")
    write_note(plane, "before")
    wait_written(plane, "before")
    plane.kill("kube-apiserver")
    plane.start("kube-apiserver")
    write_note(plane, "after")
    wait_written(plane, "after")
    operator.send(signal.SIGTERM)
    assert operator.wait() == 0


def test_a_leader_that_gets_no_answer_exits_by_the_renew_deadline(
    plane: ControlPlane, run_sample_on: StartOperator
) -> None:
    """The server accepts connections and says nothing: each call is bounded by the deadline."""
    times = ("--lease-duration=6", "--renew-deadline=4", "--retry-period=0.5")
    operator = run_sample_on("--leader-elect", *times)
    operator.logged("leading")
    plane.pause("kube-apiserver")
    try:
        assert operator.wait() == 1
    finally:
        plane.resume("kube-apiserver")
    last = operator.lines()[-1]
    assert (last["event"], last["reason"][:14]) == ("exiting", "LeadershipLost")
