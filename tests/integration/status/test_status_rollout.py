"""Roll-outs and Jobs are judged as kubectl judges them. On a real API server.

No controller runs, so each object stays in the state that the test has written.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any, Literal

import pytest
from tests.objects import deployment as a_deployment
from tests.objects import foreign_container, pod
from tests.objects import job as a_job

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.status.rollout import (
    Done,
    Failed,
    Outcome,
    daemon_set,
    deployment,
    job,
    stateful_set,
)
from quarterdeck.testing.api_objects import ApiObjects

Verdict = Literal["done", "waiting", "failed"]
State = tuple[str, Object, Object]
"""A name, the object, and its status; its observedGeneration is 1 if it has none."""

WANTED = 2
TEMPLATE = pod("x", foreign_container())
START, END = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


@pytest.fixture(scope="module")
def plane(
    control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    state = tmp_path_factory.mktemp("without-controllers")
    made = ControlPlane(state, control_plane_binaries, durable=False)
    made.start("etcd", "kube-apiserver")
    yield made
    made.close()


def condition(type_: str, status: str, reason: str = "Because") -> Object:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": reason,
        "lastTransitionTime": END,
    }


def workload(kind: str, name: str, **spec: Any) -> Object:
    made = a_deployment(name, TEMPLATE)
    whole = made["spec"] | spec
    if kind == "DaemonSet":
        del whole["replicas"]
    return made | {"kind": kind, "spec": whole}


def counted(there: int, updated: int, ready: int, available: int) -> Object:
    return {
        "replicas": there,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": available,
    }


def deployments() -> Iterator[State]:
    def state(name: str, status: Object, **spec: Any) -> State:
        return name, workload("Deployment", name, **({"replicas": WANTED} | spec)), status

    for there, updated, available in product((1, 2, 3), (0, 1, 2), (0, 1, 2)):
        if updated <= there and available <= there:
            name = f"there-{there}-updated-{updated}-available-{available}"
            yield state(name, counted(there, updated, available, available))
    complete, partial = counted(2, 2, 2, 2), counted(2, 2, 1, 1)
    yield state("ready-not-available", counted(2, 2, 2, 1))
    yield state("none-wanted", counted(0, 0, 0, 0), replicas=0)
    yield state("none-wanted-one-left", counted(1, 0, 1, 1), replicas=0)
    yield state("none-wanted-new-one-left", counted(1, 1, 1, 1), replicas=0)
    yield state("not-observed", complete | {"observedGeneration": 0})
    yield state("never-observed", {"observedGeneration": 0})
    for name, status in (("partial", partial), ("complete", complete)):
        late = [condition("Progressing", "False", "ProgressDeadlineExceeded")]
        yield state(f"late-{name}", status | {"conditions": late})
        yield state(f"late-{name}-paused", status | {"conditions": late}, paused=True)
        yield state(f"paused-{name}", status, paused=True)
        unobserved = status | {"conditions": late, "observedGeneration": 0}
        yield state(f"late-{name}-not-observed", unobserved)
    refused = [condition("ReplicaFailure", "True", "FailedCreate")]
    yield state("refused", counted(0, 0, 0, 0) | {"conditions": refused})
    not_made = [condition("Progressing", "False", "ReplicaSetCreateError")]
    yield state("no-replica-set", counted(0, 0, 0, 0) | {"conditions": not_made})
    yield state("was-refused", complete | {"conditions": refused})


def daemon_sets() -> Iterator[State]:
    for wanted, updated, available in product((0, 2), (0, 1, 2), (0, 1, 2)):
        name = f"wanted-{wanted}-updated-{updated}-available-{available}"
        status = {
            "currentNumberScheduled": 2,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": wanted,
            "updatedNumberScheduled": updated,
            "numberReady": available,
            "numberAvailable": available,
        }
        yield name, workload("DaemonSet", name), status
        if updated == available == wanted:
            unobserved = f"{name}-not-observed"
            yield unobserved, workload("DaemonSet", unobserved), status | {"observedGeneration": 0}


def stateful_sets() -> Iterator[State]:
    def state(name: str, status: Object, partition: int = 0, **spec: Any) -> State:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
        whole = {"replicas": WANTED, "serviceName": "x", "updateStrategy": rolling} | spec
        return name, workload("StatefulSet", name, **whole), status

    for partition, updated, ready in product((0, 1, 3), (0, 1, 2), (0, 1, 2)):
        name = f"partition-{partition}-updated-{updated}-ready-{ready}"
        yield state(name, counted(2, updated, ready, ready), partition)
    yield state("one-too-many", counted(3, 3, 3, 3))
    yield state("ready-not-available", counted(2, 2, 2, 0), minReadySeconds=60)
    yield state("none-wanted", counted(0, 0, 0, 0), replicas=0)
    yield state("none-wanted-one-left", counted(1, 1, 1, 1), replicas=0)
    yield state("not-observed", counted(2, 2, 2, 2) | {"observedGeneration": 0})
    revisions = {"currentRevision": "x-1", "updateRevision": "x-2"}
    yield state("two-revisions", counted(2, 2, 2, 2) | revisions)


def jobs() -> Iterator[State]:
    def state(name: str, status: Object, **spec: Any) -> State:
        return name, a_job(name, TEMPLATE, **spec), status

    met = condition("SuccessCriteriaMet", "True")
    complete = condition("Complete", "True")
    ending = condition("FailureTarget", "True")
    failed = condition("Failed", "True")
    yield state("never-observed", {})
    yield state("active", {"startTime": START, "active": 1, "ready": 1})
    yield state("suspended", {"conditions": [condition("Suspended", "True")]}, suspend=True)
    yield state("about-to-complete", {"startTime": START, "conditions": [met]})
    whole = {"startTime": START, "completionTime": END, "succeeded": 1}
    yield state("complete", whole | {"conditions": [met, complete]})
    yield state("about-to-fail", {"startTime": START, "conditions": [ending]})
    yield state("failed", {"startTime": START, "failed": 1, "conditions": [ending, failed]})


def verdict(outcome: Outcome) -> Verdict:
    match outcome:
        case Done():
            return "done"
        case Failed():
            return "failed"
        case _:
            return "waiting"


def of_rollout(plane: ControlPlane, kind: str, name: str) -> Verdict:
    """The verdict of `kubectl rollout status`."""
    ended = plane.kubectl("rollout", "status", f"{kind}/{name}", "--watch=false", check=False)
    if ended.returncode:
        assert "exceeded its progress deadline" in ended.stderr
        return "failed"
    if ended.stdout.startswith("Waiting for"):
        return "waiting"
    assert "successfully rolled out" in ended.stdout or "roll out complete" in ended.stdout
    return "done"


def of_wait(plane: ControlPlane, kind: str, name: str) -> Verdict:
    """The verdict of `kubectl wait`, for a Job."""
    for condition_type, found in (("complete", "done"), ("failed", "failed")):
        wanted = f"--for=condition={condition_type}"
        ended = plane.kubectl("wait", f"{kind}/{name}", wanted, "--timeout=0s", check=False)
        if not ended.returncode:
            return found  # type: ignore[return-value]
        assert "condition not met" in ended.stderr or "timed out" in ended.stderr
    return "waiting"


def compare(
    plane: ControlPlane,
    states: Iterable[State],
    rule: Callable[[Object], Outcome],
    theirs: Callable[[ControlPlane, str, str], Verdict],
) -> dict[str, tuple[Verdict, Verdict]]:
    """By the name of each state: our verdict and kubectl's."""
    objects = ApiObjects(plane.requests(), "default")

    def judge(state: State) -> tuple[str, tuple[Verdict, Verdict]]:
        name, obj, status = state
        kind = obj["kind"].lower()
        objects.apply(obj)
        observed = {} if kind == "job" else {"observedGeneration": 1}
        written = {"status": observed | status}
        live = objects.patch(kind, name, written, subresource="status")
        assert live["metadata"]["generation"] == 1
        return name, (verdict(rule(live)), theirs(plane, kind, name))

    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(judge, states))


def differing(found: dict[str, tuple[Verdict, Verdict]]) -> dict[str, tuple[Verdict, Verdict]]:
    assert {theirs for _, theirs in found.values()} >= {"done", "waiting"}
    return {name: both for name, both in found.items() if both[0] != both[1]}


def test_a_deployment_is_judged_as_by_kubectl_but_a_refusal_is_told_at_once(
    plane: ControlPlane,
) -> None:
    found = compare(plane, deployments(), deployment, of_rollout)
    assert len(found) >= 30
    # kubectl waits for the deadline, ten minutes by default, and then does not say why.
    assert differing(found) == {
        "refused": ("failed", "waiting"),
        "no-replica-set": ("failed", "waiting"),
    }


def test_a_daemon_set_is_judged_as_by_kubectl(plane: ControlPlane) -> None:
    assert differing(compare(plane, daemon_sets(), daemon_set, of_rollout)) == {}


def test_a_stateful_set_is_judged_as_by_kubectl(plane: ControlPlane) -> None:
    assert differing(compare(plane, stateful_sets(), stateful_set, of_rollout)) == {}


def test_a_job_is_judged_as_by_kubectl(plane: ControlPlane) -> None:
    found = compare(plane, jobs(), job, of_wait)
    assert differing(found) == {}
    assert found["failed"] == ("failed", "failed")
