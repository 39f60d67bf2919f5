"""The model of the API server that the unit tests rely on, checked against a real one."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from tests.integration.operators.staleness.board import Board, conditions
from tests.objects import CLUSTER_OPERATOR
from tests.unit.operators.staleness.model import CHECKER, OPERATOR, ModelServer, changed

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.status.staleness_marks import checking_message, verdict_message
from quarterdeck.status.writers import condition_writes
from quarterdeck.testing.waiting import eventually

Step = tuple[str, Callable[[list[Object]], list[Object]]]


def challenged(found: list[Object]) -> list[Object]:
    return [one | {"message": checking_message(one["message"])} for one in found]


def silent(one: Object) -> Object:
    return {field: value for field, value in one.items() if field != "message"}


def given_up(found: list[Object]) -> list[Object]:
    return [
        one
        | {
            "message": verdict_message(one["message"], one["status"], 20),
            "status": "Unknown",
            "lastTransitionTime": "2026-01-02T00:00:00Z",
        }
        for one in found
    ]


# Each a writer, and what it makes of the conditions that it finds.
STEPS: list[Step] = [
    (CHECKER, challenged),
    (CHECKER, challenged),  # the same again changes nothing
    (OPERATOR, lambda found: changed(found, "Degraded", message="all is well")),
    (OPERATOR, lambda _: conditions()),
    (OPERATOR, lambda _: conditions()),
    (CHECKER, challenged),
    (OPERATOR, lambda found: changed(found, "Available", reason="Other")),
    (CHECKER, given_up),
    (OPERATOR, lambda found: found[:3]),
    (OPERATOR, lambda _: conditions("other words")),
    (CHECKER, challenged),
    (OPERATOR, lambda found: [silent(one) for one in found]),  # an answer that moves no time
    (OPERATOR, lambda _: conditions()),
]


def written(obj: Object) -> dict[str, tuple[frozenset[str], bool]]:
    return {write.manager: (write.messages, write.whole) for write in condition_writes(obj)}


def times(obj: Object) -> dict[str, datetime | None]:
    return {write.manager: write.time for write in condition_writes(obj)}


def next_second() -> datetime:
    """The API's times have whole seconds: a change is seen in them only after the next begins."""
    now = datetime.now(UTC)
    time.sleep(1.05 - now.microsecond / 1e6)
    return datetime.now(UTC)


class Play:
    """The same writes to a ClusterOperator of a real API server and to the model of it."""

    def __init__(self, requests: Requests, collection: str, kind: Object) -> None:
        self._requests = requests
        self._collection = collection
        body = {**kind, "metadata": {"name": "it"}, "spec": {}}
        self._send("POST", collection, body)
        self._write(OPERATOR, conditions())
        found = self._real()
        (written_by,) = [
            entry["fieldsV1"]["f:status"]["f:conditions"]
            for entry in found["metadata"]["managedFields"]
            if entry["manager"] == OPERATOR
        ]
        self.atomic = written_by == {}
        self._model = ModelServer(found["status"]["conditions"], atomic=self.atomic)
        assert written(self._model.get()) == written(found)

    def step(self, number: int, now: datetime) -> None:
        """Make the next write on both sides, and compare what has come of it."""
        manager, change = STEPS[number]
        before, model_before = times(self._real()), times(self._model.get())
        self._model.now = now
        self._model.update(manager, change(self._model.conditions))
        self._write(manager, change(self._real()["status"]["conditions"]))
        real, modelled = self._real(), self._model.get()
        assert real["status"]["conditions"] == modelled["status"]["conditions"]
        assert written(modelled) == written(real), f"step {number}"
        after, model_after = times(real), times(modelled)
        moved = {name for name in after if after[name] != before.get(name)}
        model_moved = {n for n in model_after if model_after[n] != model_before.get(n)}
        assert model_moved == moved, f"step {number}: whose time moves"

    def _real(self) -> Object:
        return self._send("GET", f"{self._collection}/it")

    def _write(self, manager: str, said: list[Object]) -> None:
        path = f"{self._collection}/it/status?fieldManager={manager}"
        self._send("PATCH", path, {"status": {"conditions": said}})

    def _send(self, method: str, path: str, body: Object | None = None) -> Object:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        content = None if body is None else json.dumps(body).encode()
        answer = self._requests.send(method, path, content, kind)
        assert answer.ok, answer.body.decode()
        found: Object = answer.json()
        return found


GROUP = "atomic.example.test"


@pytest.fixture
def atomic_group(board: Board) -> str:
    """Another group with the same kind, whose conditions are an atomic list, as in older ones."""
    requests = board.plane.requests()
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    ours = requests.send("GET", f"{path}/clusteroperators.config.openshift.io").json()
    spec = ours["spec"] | {"group": GROUP}
    (version,) = spec["versions"]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    listed = status["properties"]["conditions"]
    listed["x-kubernetes-list-type"] = "atomic"
    del listed["x-kubernetes-list-map-keys"]
    about = {"apiVersion": ours["apiVersion"], "kind": ours["kind"]}
    copy = {**about, "metadata": {"name": f"clusteroperators.{GROUP}"}, "spec": spec}
    made = requests.send("POST", path, json.dumps(copy).encode())
    assert made.ok, made.body.decode()
    where = f"/apis/{GROUP}/{version['name']}/clusteroperators"
    eventually(lambda: requests.send("GET", where).ok, "the atomic kind is served")
    return where


@pytest.mark.slow
def test_the_model_does_what_the_server_does(board: Board, atomic_group: str) -> None:
    """Who owns which message after each write, and whose time moves, for both kinds of list.

    Side by side, as each write has to wait for a second of its own.
    """
    requests = board.plane.requests()
    plays = [
        Play(requests, "/apis/config.openshift.io/v1/clusteroperators", CLUSTER_OPERATOR),
        Play(requests, atomic_group, CLUSTER_OPERATOR | {"apiVersion": f"{GROUP}/v1"}),
    ]
    assert [play.atomic for play in plays] == [False, True]
    for number in range(len(STEPS)):
        now = next_second()
        for play in plays:
            play.step(number, now)
