"""Two replicas of an operator: one leads, and when it goes, the other takes over."""

import signal
import time

import pytest
from tests.objects import note

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.audit import requests_by, writes_by
from quarterdeck.testing.operator_process import OperatorProcess, StartOperator
from quarterdeck.testing.plugin import Kubectl
from quarterdeck.testing.waiting import eventually

ELECT = "--leader-elect"
QUICK = (ELECT, "--lease-duration=6", "--renew-deadline=4", "--retry-period=0.5")


@pytest.fixture
def objects(control_plane: ControlPlane, namespace: str) -> ApiObjects:
    """What is in the test's namespace."""
    return ApiObjects(control_plane.requests(), namespace)


NOTES = 40
"""So many that a paused leader finds work to do before it has read all that it missed."""


def write_notes(objects: ApiObjects, text: str) -> None:
    for number in range(NOTES):
        objects.apply(note(f"n{number}", text))


def wait_written(objects: ApiObjects, text: str) -> list[str]:
    """The versions of all ConfigMaps once they have the text and all notes say so."""

    def look() -> list[str] | None:
        made = [it for it in objects.list("configmaps") if "text" in it.get("data", {})]
        notes = objects.list("notes")
        seen = [note.get("status", {}).get("observedGeneration") for note in notes]
        if seen != [note["metadata"]["generation"] for note in notes]:
            return None
        if [config_map["data"]["text"] for config_map in made] != [text] * NOTES:
            return None
        return [config_map["metadata"]["resourceVersion"] for config_map in made]

    return eventually(look, f"{NOTES} ConfigMaps with {text!r}")


@pytest.fixture
def leader_and_standby(
    run_sample: StartOperator, objects: ApiObjects
) -> tuple[OperatorProcess, OperatorProcess]:
    """Two replicas, of which the first one leads and has written a ConfigMap."""
    first = run_sample(*QUICK)
    first.logged("leading")
    second = run_sample(*QUICK)
    second.logged("standing by")
    write_notes(objects, "by the first")
    wait_written(objects, "by the first")
    return first, second


def test_only_the_leader_works_and_the_standby_is_ready(
    leader_and_standby: tuple[OperatorProcess, OperatorProcess],
) -> None:
    leader, standby = leader_and_standby
    status = 'leader_election_master_status{name="sample-operator"}'
    assert (leader.metric(status), standby.metric(status)) == (1, 0)
    assert standby.get("/readyz") == (200, "[+]sample\nready\n")
    assert not standby.lines("controller started")


def test_when_the_leader_is_killed_the_other_takes_over(
    leader_and_standby: tuple[OperatorProcess, OperatorProcess],
    objects: ApiObjects,
) -> None:
    """With -9 nothing is handed back: the Lease has to run out first."""
    leader, standby = leader_and_standby
    leader.kill()
    write_notes(objects, "by the second")
    wait_written(objects, "by the second")
    assert standby.lines("leading")


def test_a_leader_that_was_paused_past_its_lease_exits_and_writes_nothing(
    leader_and_standby: tuple[OperatorProcess, OperatorProcess],
    objects: ApiObjects,
    control_plane: ControlPlane,
    sample_user: str,
) -> None:
    """It wakes up with a stale view and believes to lead; its successor's work stays."""
    leader, standby = leader_and_standby

    def reported() -> bool:
        done = writes_by(control_plane.audit_log, sample_user)
        return any(it.resource == "clusteroperators/status" and it.code == 200 for it in done)

    eventually(reported, "its ClusterOperator is written, so that nobody has to later")
    leader.send(signal.SIGSTOP)
    # When the paused one wakes, it reads note by note what it missed, and what it then does
    # about a ConfigMap is decided upon a view that is no longer so.
    write_notes(objects, "by the second")
    standby.logged("leading")
    versions = wait_written(objects, "by the second")
    before = writes_by(control_plane.audit_log, sample_user)

    leader.send(signal.SIGCONT)
    assert leader.wait() == 1
    last = leader.lines()[-1]
    assert last["event"] == "exiting"
    assert last["reason"].startswith("LeadershipLost")
    assert writes_by(control_plane.audit_log, sample_user) == before
    assert wait_written(objects, "by the second") == versions


def test_a_leader_that_is_stopped_hands_the_lease_back(
    run_sample: StartOperator, objects: ApiObjects
) -> None:
    """The next one need not wait for the Lease to run out, which would take a minute here."""
    slow = (ELECT, "--lease-duration=60", "--renew-deadline=40", "--retry-period=1")
    first = run_sample(*slow)
    first.logged("leading")
    second = run_sample(*slow)
    second.logged("standing by")
    stopped_at = time.monotonic()
    first.send(signal.SIGTERM)
    assert first.wait() == 0
    second.logged("leading")
    assert time.monotonic() - stopped_at < 30
    assert [line["event"] for line in first.lines()][-2:] == ["lease handed back", "stopped"]
    write_notes(objects, "by the second")
    wait_written(objects, "by the second")
    second.send(signal.SIGTERM)
    assert second.wait() == 0
    assert not objects.get("lease", "sample-operator")["spec"].get("holderIdentity")


def test_a_leader_whose_lease_was_taken_exits(
    run_sample: StartOperator, objects: ApiObjects
) -> None:
    leader = run_sample(*QUICK)
    leader.logged("leading")
    patch = {"spec": {"holderIdentity": "usurper", "leaseDurationSeconds": 3600}}
    objects.patch("lease", "sample-operator", patch)
    assert leader.wait() == 1
    assert "taken by usurper" in leader.lines()[-1]["reason"]


def test_a_lease_that_may_not_be_written_is_said_by_readyz(
    run_sample: StartOperator, kubectl: Kubectl, namespace: str
) -> None:
    kubectl("delete", "rolebinding", "sample-operator-lease", "-n", namespace)
    operator = run_sample(*QUICK)

    def refusal() -> str | None:
        code, page = operator.get("/readyz")
        return page if code == 503 and "leases" in page else None

    assert "403" in eventually(refusal, "not ready because of the Lease")


def test_a_settled_leader_makes_no_request_but_watches_and_leases(
    leader_and_standby: tuple[OperatorProcess, OperatorProcess],
    control_plane: ControlPlane,
    sample_user: str,
) -> None:
    """Counted at the server over six renewals."""

    def requests() -> list[tuple[str, str]]:
        return [(it.verb, it.resource) for it in requests_by(control_plane.audit_log, sample_user)]

    reported = ("patch", "clusteroperators/status")
    eventually(lambda: reported in requests(), "its ClusterOperator is written")
    before = len(requests())

    def renewals() -> bool:
        return requests()[before:].count(("update", "leases")) >= 6

    eventually(renewals, "six renewals")
    kinds = set(requests()[before:])
    watches = {("watch", "notes"), ("watch", "clusteroperators")}
    assert kinds <= {("update", "leases"), ("get", "leases"), *watches}
