"""The node without its API server: processes go on, and what happened is told afterwards."""

import time
from pathlib import Path
from typing import Any

import pytest
from tests.integration.pods import needs_bubblewrap
from tests.objects import container, job, pod, sharing

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.plugin import NewControlPlane
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = needs_bubblewrap


LEASE = 4
"""Seconds; so short that a test can wait until it is over."""


@pytest.fixture
def plane(new_control_plane: NewControlPlane) -> ControlPlane:
    """A control plane of this test alone, with the node."""
    plane = new_control_plane(node_lease=LEASE)
    plane.add_this_machine(["--back-off-first=0.2", "--back-off-maximum=0.2"])
    plane.start("this-machine")
    return plane


def status(seen: Object) -> dict[str, Any]:
    statuses = seen["status"].get("containerStatuses")
    return dict(statuses[0]) if statuses else {"state": {}, "restartCount": 0}


def test_containers_are_restarted_while_there_is_no_api_server(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """Their restarts are counted, and the API server is told when it is back."""
    node = ThisMachine(plane, "default")
    runs = tmp_path / "runs"
    runs.mkdir()
    script = "date +%s%N >> /runs/log; sleep 0.3; exit 1"
    crashes = pod("crashes", container(script), terminationGracePeriodSeconds=1)
    node.apply(sharing(crashes, runs))

    def count() -> int:
        return len((runs / "log").read_text().splitlines()) if (runs / "log").exists() else 0

    node.wait(count, lambda seen: seen >= 2)
    plane.stop("kube-apiserver")
    before = count()
    node.wait(count, lambda seen: seen >= before + 5)
    plane.start("kube-apiserver")
    after = count()
    told = node.wait_pod("crashes", lambda seen: status(seen)["restartCount"] + 1 >= after)
    # No more than there were; the last may be told of before it has written its line.
    node.wait(count, lambda seen: seen >= status(told)["restartCount"] + 1)


STEADY = """
echo $$ $(date +%s%N) >> /runs/starts
while :; do date +%s%N > /runs/beat; sleep 0.1; done
"""


def steady_pod(runs: Path) -> Object:
    probe = {"exec": {"command": ["test", "-e", "/runs/beat"]}, "periodSeconds": 1}
    main = container(STEADY, readinessProbe=probe)
    return sharing(pod("steady", main, terminationGracePeriodSeconds=0), runs)


def condition(seen: Object, kind: str = "Ready") -> str:
    found = [each for each in seen["status"].get("conditions", []) if each["type"] == kind]
    return str(found[0]["status"]) if found else ""


@pytest.mark.slow
def test_a_node_that_was_given_up_for_lost_is_ready_again(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """First the node is away for longer than its Lease, and then the API server is.

    The first time others say that the node is not to be reached and its pod not ready, which the
    node puts right when it is back. All the time the pod's process goes on.
    """
    node, runs = ThisMachine(plane, "default"), tmp_path / "runs"
    runs.mkdir()
    node.apply(steady_pod(runs))
    before = node.wait_pod("steady", lambda seen: condition(seen) == "True")

    plane.pause("this-machine")
    try:
        node.wait(lambda: node.get("node", "this-machine"), lambda it: condition(it) == "Unknown")
        node.wait_pod("steady", lambda seen: condition(seen) == "False")
    finally:
        plane.resume("this-machine")
    wait_until_well(node)

    plane.stop("kube-apiserver")
    stopped, beat = time.monotonic(), (runs / "beat").read_text()
    node.wait(lambda: time.monotonic() - stopped > 1.5 * LEASE)
    node.wait(lambda: (runs / "beat").read_text(), lambda seen: seen != beat)
    plane.start("kube-apiserver", "kube-controller-manager")
    leases = ThisMachine(plane, "kube-node-lease")
    old = leases.get("lease", "this-machine")["spec"]["renewTime"]
    node.wait(lambda: leases.get("lease", "this-machine")["spec"]["renewTime"] != old)
    wait_until_well(node)

    after = node.get("pod", "steady")
    assert status(after)["restartCount"] == 0
    assert status(after)["containerID"] == status(before)["containerID"]
    assert len((runs / "starts").read_text().splitlines()) == 1, "one process, all the time"
    written = plane.layout.log_of("this-machine").read_text().count("node is ready")
    assert written <= 6, "its status is written when it is not so, and not at each look"


def wait_until_well(node: ThisMachine) -> None:
    """The node and its pod are ready, and nothing keeps other pods away."""
    node.wait(lambda: node.get("node", "this-machine"), lambda seen: condition(seen) == "True")
    node.wait_pod("steady", lambda seen: condition(seen) == "True")
    node.wait(
        lambda: node.get("node", "this-machine")["spec"]["taints"],
        lambda seen: [taint["key"] for taint in seen] == ["quarterdeck.dev/node"],
    )


@pytest.mark.slow
def test_what_nobody_was_told_of_is_not_run_again(plane: ControlPlane, tmp_path: Path) -> None:
    """Without an API server a Job ends well and a pod's main container begins; then kill -9.

    The Job is done, and the main container, which may run but once, has failed.
    """
    node, runs = ThisMachine(plane, "default"), tmp_path / "runs"
    runs.mkdir()
    until_told = "until [ -e /runs/go ]; do sleep 0.05; done"

    worker = pod("job", container(f"{until_told}; echo job >> /runs/log"))
    once = pod(
        "once",
        container("echo once >> /runs/log; sleep 1000"),
        initContainers=[container(until_told, "init")],
        restartPolicy="Never",
    )
    node.apply(job("job", sharing(worker, runs)))
    node.apply(sharing(once, runs))

    def begun() -> list[Object]:
        pods = node.list("pods")
        kinds = ("containerStatuses", "initContainerStatuses")
        return [
            pod
            for pod in pods
            if any(
                "running" in each["state"] for kind in kinds for each in pod["status"].get(kind, [])
            )
        ]

    node.wait(begun, lambda seen: len(seen) == 2)
    plane.stop("kube-apiserver")
    (runs / "go").touch()
    node.wait(
        lambda: (runs / "log").exists() and sorted((runs / "log").read_text().split()),
        lambda seen: seen == ["job", "once"],
    )
    node.wait(lambda: list(plane.layout.pods.glob("*/logs/main/0.exit")))
    plane.kill("this-machine")
    plane.start("kube-apiserver", "kube-controller-manager")
    plane.start("this-machine")
    node.wait(lambda: node.get("job", "job")["status"].get("succeeded"))
    failed = node.wait_pod("once", lambda seen: seen["status"]["phase"] == "Failed")
    ended = status(failed)["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
    assert sorted((runs / "log").read_text().split()) == ["job", "once"]
    assert len(node.list("pods", "job-name=job")) == 1
