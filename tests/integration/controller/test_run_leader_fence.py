"""A leader that is replaced while one of its writes is on its way: the server refuses the write.

The write is held by a proxy between the leader and the server, and let through when the leader's
successor has done its work. The leader itself is paused, so nothing in it can call the write back.
"""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import objects

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.audit import AuditedRequest, writes_by
from quarterdeck.testing.fault_proxy import FaultProxy, Hold
from quarterdeck.testing.operator_process import OperatorProcess, StartOperator
from quarterdeck.testing.plugin import Kubectl
from quarterdeck.testing.waiting import eventually

QUICK = ("--leader-elect", "--lease-duration=6", "--renew-deadline=4", "--retry-period=0.5")


class Note:
    """The note of the test, and the ConfigMap that an operator keeps for it."""

    def __init__(self, objects: ApiObjects, kubectl: Kubectl) -> None:
        self._objects = objects
        self._kubectl = kubectl

    def say(self, text: str) -> None:
        self._objects.apply(objects.note("n", text))

    def remove(self) -> None:
        self._kubectl("delete", "note", "n", "-n", self._objects.namespace)

    def found(self) -> dict[str, Any]:
        """Both, by kind, as the server has them."""
        found = {kind: self._objects.find(kind.lower(), "n") for kind in ("Note", "ConfigMap")}
        return {kind: item for kind, item in found.items() if item is not None}

    def wait_written(self, text: str) -> None:
        def written() -> bool:
            found = self.found()
            if "ConfigMap" not in found or found["ConfigMap"]["data"]["text"] != text:
                return False
            note = found["Note"]
            seen = note.get("status", {}).get("observedGeneration")
            return bool(seen == note["metadata"]["generation"])

        eventually(written, f"ConfigMap with {text!r}, and a note that says so")

    def wait_gone(self) -> None:
        eventually(lambda: self.found() == {}, "note and ConfigMap gone")


@pytest.fixture
def note(control_plane: ControlPlane, kubectl: Kubectl, namespace: str) -> Note:
    return Note(ApiObjects(control_plane.requests(), namespace), kubectl)


@pytest.fixture
def leader(
    run_sample: StartOperator,
    control_plane: ControlPlane,
    fault_proxy: FaultProxy,
    note: Note,
    namespace: str,
    tmp_path: Path,
) -> OperatorProcess:
    """A leader behind the proxy, under its own account, that has written a note's ConfigMap."""
    token = control_plane.kubectl("create", "token", "sample-operator", "-n", namespace).stdout
    proxied = fault_proxy.write_kubeconfig(tmp_path / "proxied", token.strip())
    leader = run_sample(*QUICK, f"--kubeconfig={proxied}")
    leader.logged("leading")
    note.say("first")
    note.wait_written("first")
    return leader


def changed_by_the_successor(note: Note) -> None:
    note.say("by the successor")
    note.wait_written("by the successor")


def removed_for_good(note: Note) -> None:
    note.remove()
    note.wait_gone()


@pytest.mark.parametrize(
    ("resource", "meanwhile"),
    [
        pytest.param("configmaps", changed_by_the_successor, id="an object that was changed"),
        pytest.param("notes/status", changed_by_the_successor, id="a status that was changed"),
        pytest.param("configmaps", removed_for_good, id="an object that is gone"),
    ],
)
def test_a_write_that_arrives_after_the_leader_was_replaced_is_refused(
    leader: OperatorProcess,
    run_sample: StartOperator,
    control_plane: ControlPlane,
    fault_proxy: FaultProxy,
    note: Note,
    sample_user: str,
    resource: str,
    meanwhile: Callable[[Note], None],
) -> None:
    """With the uid and the version of what was decided upon, 409; nothing else changes."""
    hold = Hold()
    fault_proxy.inject(hold, verb="patch", resource=resource)
    note.say("decided by the one who led")
    assert hold.held.wait(30)
    leader.send(signal.SIGSTOP)
    successor = run_sample(*QUICK)
    successor.logged("leading")
    meanwhile(note)
    state = note.found()

    def writes() -> list[AuditedRequest]:
        done = writes_by(control_plane.audit_log, sample_user)
        return [it for it in done if it.resource == resource]

    before = len(writes())
    hold.let_go.set()
    eventually(lambda: len(writes()) > before, "the held write at the server")
    assert [(it.verb, it.name, it.code) for it in writes()[before:]] == [("patch", "n", 409)]
    assert note.found() == state

    leader.send(signal.SIGCONT)
    assert leader.wait() == 1
    assert leader.lines()[-1]["reason"].startswith("LeadershipLost")
    assert len(writes()) == before + 1
    assert note.found() == state
