"""No room on the disk while a container writes its log: it goes on, and so does the node."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.pods import needs_bubblewrap
from tests.objects import container, pod

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.plugin import NewControlPlane
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = [
    needs_bubblewrap,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk"),
]

SIZE = 1_000_000


@pytest.fixture
def plane(new_control_plane: NewControlPlane) -> Iterator[ControlPlane]:
    """A control plane whose pods' files, logs among them, are on a disk of one megabyte."""
    plane = new_control_plane()
    pods = plane.layout.pods
    pods.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(pods)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("nothing can be mounted here")
    try:
        plane.add_this_machine()
        plane.start("this-machine")
        yield plane
    finally:
        plane.kill("this-machine")
        subprocess.run(["umount", "--lazy", str(pods)], check=True)


def fill(directory: Path) -> Path:
    """A file that takes all the room that is left."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 4096):
                continue
        except OSError:
            return filler
    raise AssertionError("unreachable")


def quick_pod(name: str, script: str) -> Object:
    return pod(name, container(script), terminationGracePeriodSeconds=0)


def test_a_full_disk_loses_lines_and_nothing_else(plane: ControlPlane) -> None:
    """`kubectl logs` answers, an event tells, and with room again the log goes on."""
    node = ThisMachine(plane, "default")
    line = "x" * 200
    node.apply(quick_pod("talks", f"n=0; while :; do n=$((n+1)); echo $n {line}; sleep 0.02; done"))
    node.wait_logged("talks", "3 x")
    filler = fill(plane.layout.pods)

    def reasons(name: str) -> list[str]:
        return [
            event["reason"]
            for event in node.list("events.events.k8s.io")
            if event["regarding"]["name"] == name
        ]

    node.wait(lambda: reasons("talks"), lambda seen: "LogsLost" in seen)
    told = node.logs("talks").splitlines()
    assert all(each.endswith(f" {line}") for each in told), "whole lines only"
    last = int(told[-1].split()[0])

    # A pod that cannot be started now says why, and starts when there is room.
    node.apply(quick_pod("late", "echo up; sleep 1000"))
    waiting = node.wait_pod(
        "late",
        lambda seen: any(
            each["state"].get("waiting", {}).get("reason") == "CreateContainerError"
            for each in seen["status"].get("containerStatuses", [])
        ),
    )
    (status,) = waiting["status"]["containerStatuses"]
    assert "No space left on device" in status["state"]["waiting"]["message"]

    filler.unlink()
    node.wait_logged("late", "up")
    node.wait(lambda: reasons("talks"), lambda seen: "LogsResumed" in seen)
    numbers = node.wait(
        lambda: [int(each.split()[0]) for each in node.logs("talks").splitlines()],
        lambda seen: seen[-1] > last,
    )
    assert numbers == sorted(numbers)
    missing = set(range(1, numbers[-1])) - set(numbers)
    assert missing, "it wrote on while nothing was kept"
    (status,) = node.get("pod", "talks")["status"]["containerStatuses"]
    assert status["restartCount"] == 0
    assert "running" in status["state"]
