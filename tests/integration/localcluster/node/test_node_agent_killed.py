"""The node's agent killed with -9 and started again: nothing is left, nothing runs twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import objects
from tests.integration.pods import needs_bubblewrap

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = needs_bubblewrap


def pod(name: str, script: str, **spec: Any) -> Object:
    return objects.pod(name, objects.container(script), terminationGracePeriodSeconds=1, **spec)


def status(seen: Object) -> dict[str, Any]:
    statuses = seen["status"].get("containerStatuses")
    return dict(statuses[0]) if statuses else {"state": {}, "restartCount": 0}


def is_running(seen: Object) -> bool:
    return "running" in status(seen)["state"]


def processes_with(mark: str) -> list[str]:
    """The processes on this machine whose command line has the mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.fixture
def plane(node_agent: ControlPlane) -> Iterator[ControlPlane]:
    """The shared control plane, whose agent runs again after the test whatever happens in it."""
    yield node_agent
    node_agent.start("this-machine")


def test_processes_go_with_the_agent_and_come_back_once(
    plane: ControlPlane, this_machine: ThisMachine
) -> None:
    """Killed: not a process is left. Started again: one process, one restart more."""
    mark = f"{this_machine.namespace}-always"
    this_machine.apply(pod("always", f"echo up; sleep 1000 # {mark}"))
    first = this_machine.wait_pod("always", is_running)
    this_machine.wait_logged("always", "up")
    assert processes_with(mark)
    plane.kill("this-machine")
    this_machine.wait(lambda: not processes_with(mark))
    plane.start("this-machine")
    again = this_machine.wait_pod("always", lambda seen: status(seen)["restartCount"] == 1)
    assert first["status"]["podIP"] == again["status"]["podIP"]
    this_machine.wait_pod("always", is_running)
    lost = status(this_machine.get("pod", "always"))["lastState"]["terminated"]
    assert (lost["exitCode"], lost["reason"]) == (137, "ContainerStatusUnknown")
    this_machine.wait_logged("always", "up")
    assert this_machine.logs("always", "--previous") == "up\n"


def test_what_is_not_to_be_restarted_has_failed_and_what_ended_stays(
    plane: ControlPlane, this_machine: ThisMachine
) -> None:
    this_machine.apply(pod("never", "sleep 1000", restartPolicy="Never"))
    this_machine.apply(pod("done", "true", restartPolicy="Never"))
    this_machine.wait_pod("never", is_running)
    ended = this_machine.wait_pod("done", lambda seen: seen["status"]["phase"] == "Succeeded")
    plane.kill("this-machine")
    plane.start("this-machine")
    failed = this_machine.wait_pod("never", lambda seen: seen["status"]["phase"] == "Failed")
    assert status(failed)["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert status(failed)["restartCount"] == 0
    assert this_machine.get("pod", "done")["status"] == ended["status"]


def test_a_pod_deleted_while_the_agent_was_gone_leaves_nothing(
    plane: ControlPlane, this_machine: ThisMachine
) -> None:
    """Neither one that waits for its end nor one that is gone already."""
    for name in ("asked", "forced"):
        this_machine.apply(pod(name, "sleep 1000"))
    uids = {
        this_machine.wait_pod(name, is_running)["metadata"]["uid"] for name in ("asked", "forced")
    }
    pods = plane.layout.pods
    assert uids <= {path.name for path in pods.iterdir()}
    plane.kill("this-machine")
    this_machine.kubectl("delete", "pod", "asked", "--wait=false")
    this_machine.kill("forced")
    plane.start("this-machine")
    this_machine.wait(lambda: this_machine.list("pods"), lambda seen: not seen)
    this_machine.wait(lambda: {path.name for path in pods.iterdir()}, lambda seen: not uids & seen)
