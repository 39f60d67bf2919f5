"""The sample operator as users run it, under its own account, on a real API server."""

import json
from typing import Any

import pytest
from tests.objects import note

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually


class Cluster:
    """The test's namespace, seen and changed by an administrator."""

    def __init__(self, control_plane: ControlPlane, namespace: str, user: str) -> None:
        self._control_plane = control_plane
        self.namespace = namespace
        self._user = user
        self._objects = ApiObjects(control_plane.requests(), namespace)

    def kubectl(self, *args: str, text: str | None = None) -> str:
        options = ("--namespace", self.namespace)
        return self._control_plane.kubectl(*args, *options, input=text).stdout

    def write_note(self, name: str, text: str) -> None:
        self._objects.apply(note(name, text))

    def find(self, kind: str, name: str) -> Any:
        return self._objects.find(kind, name)

    def events(self) -> list[Object]:
        return self._objects.list("events.events.k8s.io")

    def text(self, name: str) -> str | None:
        found = self.find("configmap", name)
        return found["data"].get("text") if found else None

    def ready(self, name: str) -> dict[str, Any] | None:
        """The note's Ready condition, if it is about the note as it is now."""
        note = self.find("note", name)
        status = note.get("status", {})
        if status.get("observedGeneration") != note["metadata"]["generation"]:
            return None
        conditions: list[dict[str, Any]] = status["conditions"]
        return next(one for one in conditions if one["type"] == "Ready")

    def writes(self) -> list[tuple[str, str, int]]:
        """What the operator has written for its notes so far."""
        done = writes_by(self._control_plane.audit_log, self._user)
        about_notes = [it for it in done if not it.resource.startswith("clusteroperators")]
        return [(it.verb, it.resource, it.code) for it in about_notes]

    def reported(self, type_: str) -> dict[str, Any] | None:
        """A condition of the operator itself."""
        found = self.find("clusteroperator", "sample")
        conditions = found.get("status", {}).get("conditions", []) if found else []
        return next((one for one in conditions if one["type"] == type_), None)

    def settled(self, name: str, text: str) -> bool:
        ready = self.ready(name)
        return self.text(name) == text and ready is not None and ready["status"] == "True"

    def wait_settled(self, name: str, text: str) -> None:
        eventually(lambda: self.settled(name, text), f"ConfigMap {name} with {text!r} and ready")


@pytest.fixture
def cluster(control_plane: ControlPlane, namespace: str, sample_user: str) -> Cluster:
    return Cluster(control_plane, namespace, sample_user)


def test_a_note_becomes_a_config_map_with_exactly_the_writes_that_are_needed(
    cluster: Cluster, run_sample: StartOperator
) -> None:
    """Two writes when it is created, two when it changes, none when the operator restarts."""
    operator = run_sample()
    operator.logged("controller started")
    cluster.write_note("first", "one")
    cluster.wait_settled("first", "one")
    created = [("create", "configmaps", 201), ("patch", "notes/status", 200)]
    assert cluster.writes() == created

    cluster.write_note("first", "two")
    cluster.wait_settled("first", "two")
    changed = [("patch", "configmaps", 200), ("patch", "notes/status", 200)]
    assert cluster.writes() == created + changed

    operator.kill()
    again = run_sample()
    again.logged("controller started")
    cluster.write_note("second", "three")
    cluster.wait_settled("second", "three")
    assert cluster.writes() == created + changed + created
    assert again.metric('workqueue_depth{controller="note",name="note"}') == 0


def test_the_transition_time_stays_while_the_note_stays_ready(
    cluster: Cluster, run_sample: StartOperator
) -> None:
    run_sample()
    cluster.write_note("a", "one")
    cluster.wait_settled("a", "one")
    before = cluster.ready("a")
    # Times have whole seconds: a time that moved shows only in another second.
    now = cluster.find("configmap", "a")["metadata"]["creationTimestamp"]
    eventually(lambda: _server_time(cluster) != now, "the next second")
    cluster.write_note("a", "two")
    cluster.wait_settled("a", "two")
    assert cluster.ready("a") == before


def _server_time(cluster: Cluster) -> str:
    made = cluster.kubectl("create", "token", "default", "-o", "json")
    issued: str = json.loads(made)["metadata"]["creationTimestamp"]
    return issued


def test_a_config_map_that_is_deleted_or_changed_by_others_is_put_right(
    cluster: Cluster, run_sample: StartOperator
) -> None:
    run_sample()
    cluster.write_note("a", "kept")
    cluster.wait_settled("a", "kept")

    cluster.kubectl("delete", "configmap", "a")
    cluster.wait_settled("a", "kept")

    patch = json.dumps({"data": {"text": "mine now", "other": "theirs"}})
    cluster.kubectl("patch", "configmap", "a", "--type=merge", f"--patch={patch}")
    cluster.wait_settled("a", "kept")
    data = cluster.find("configmap", "a")["data"]
    assert data == {"text": "kept", "other": "theirs"}, "others' fields are left alone"

    cluster.kubectl("label", "configmap", "a", "app.kubernetes.io/managed-by-")
    eventually(
        lambda: cluster.find("configmap", "a")["metadata"].get("labels"),
        "the label that the operator finds its ConfigMaps by is back",
    )


def test_a_note_that_is_deleted_takes_its_config_map_along(
    cluster: Cluster, run_sample: StartOperator
) -> None:
    run_sample()
    cluster.write_note("a", "short-lived")
    cluster.wait_settled("a", "short-lived")
    before = cluster.writes()
    cluster.kubectl("delete", "note", "a")
    eventually(lambda: cluster.find("configmap", "a") is None, "ConfigMap a gone")
    assert cluster.writes() == before, "the garbage collector does it, not the operator"


def test_a_config_map_of_somebody_else_is_not_touched_and_the_note_says_what_to_do(
    cluster: Cluster, run_sample: StartOperator
) -> None:
    cluster.kubectl("create", "configmap", "taken", "--from-literal=text=precious")
    run_sample()
    cluster.write_note("taken", "mine")
    ready = eventually(lambda: cluster.ready("taken"), "the note says something")
    assert (ready["status"], ready["reason"]) == ("False", "AlreadyExists")
    assert "rename one of the two" in ready["message"]
    assert cluster.text("taken") == "precious"

    event = eventually(
        lambda: cluster.events(),
        "an event about the note",
    )[0]
    assert event["regarding"]["kind"] == "Note"
    assert event["note"] == ready["message"]
    assert event["type"] == "Warning"

    cluster.kubectl("delete", "configmap", "taken")
    cluster.wait_settled("taken", "mine")


def test_the_operator_is_degraded_by_name_while_a_note_cannot_be_written_and_does_not_flap(
    control_plane: ControlPlane, cluster: Cluster, run_sample: StartOperator, sample_user: str
) -> None:
    cluster.kubectl("create", "configmap", "taken", "--from-literal=text=precious")
    operator = run_sample()

    def is_degraded(status: str) -> dict[str, Any] | None:
        found = cluster.reported("Degraded")
        return found if found is not None and found["status"] == status else None

    eventually(lambda: is_degraded("False"), "the operator says that all is well")
    cluster.write_note("taken", "mine")
    cluster.write_note("fine", "mine")
    told = eventually(lambda: is_degraded("True"), "the operator says that something is wrong")
    assert told["reason"] == "NotesNotWritten"
    assert told["message"].startswith(f"{cluster.namespace}/taken: ")
    assert "fine" not in told["message"]
    available = cluster.reported("Available")
    assert available is not None
    assert available["status"] == "True", "the other notes are written"

    failed = 'controller_runtime_reconcile_total{controller="note",result="error"}'
    eventually(lambda: operator.metric(failed) >= 3, "it has tried again, and again")
    cluster.kubectl("delete", "configmap", "taken")
    eventually(lambda: is_degraded("False"), "all is well again")
    done = writes_by(control_plane.audit_log, sample_user)
    written = [it.verb for it in done if it.resource.startswith("clusteroperators")]
    assert written == ["create", "patch", "patch", "patch"], "once, when bad, when good"


def test_missing_rights_are_said_on_the_note_and_their_return_is_noticed(
    cluster: Cluster, run_sample: StartOperator
) -> None:
    role = cluster.namespace
    rules = cluster.find("role", role)["rules"]
    place = next(n for n, rule in enumerate(rules) if rule["resources"] == ["configmaps"])
    path = f"/rules/{place}/verbs"

    def set_verbs(*verbs: str) -> None:
        patch = json.dumps([{"op": "replace", "path": path, "value": list(verbs)}])
        cluster.kubectl("patch", "role", role, "--type=json", f"--patch={patch}")

    set_verbs("list", "watch")
    operator = run_sample()
    cluster.write_note("a", "text")
    ready = eventually(lambda: cluster.ready("a"), "the note says something")
    assert (ready["status"], ready["reason"]) == ("False", "Forbidden")
    assert 'cannot create resource "configmaps"' in ready["message"]
    assert "allow it in the operator's role" in ready["message"]

    set_verbs(*rules[place]["verbs"])
    cluster.wait_settled("a", "text")
    assert operator.lines("reconcile failed"), "the log says so too"


def test_a_resource_that_cannot_be_read_is_named_by_readyz_until_it_can(
    cluster: Cluster, run_sample: StartOperator
) -> None:
    role = cluster.namespace
    rules = cluster.find("role", role)["rules"]
    patch = json.dumps({"rules": [rule for rule in rules if rule["resources"] != ["notes"]]})
    cluster.kubectl("patch", "role", role, "--type=merge", f"--patch={patch}")
    operator = run_sample()

    def refusal() -> str | None:
        code, page = operator.get("/readyz")
        return page if code == 503 and "403" in page else None

    text = eventually(refusal, "not ready, with the server's answer")
    assert text.startswith("[-]sample: waiting for notes.samples.quarterdeck.dev")
    assert operator.get("/healthz") == (200, "ok\n")

    patch = json.dumps({"rules": rules})
    cluster.kubectl("patch", "role", role, "--type=merge", f"--patch={patch}")
    eventually(lambda: operator.get("/readyz")[0] == 200, "ready")
    cluster.write_note("a", "text")
    cluster.wait_settled("a", "text")
