"""Who manages metal3: the table, the states of a roll-out, and the advice for a cluster."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from quarterdeck.api.config_v1 import Infrastructure
from quarterdeck.api.meta import Object
from quarterdeck.api.times import format_time
from quarterdeck.cli.handover import as_facts
from quarterdeck.metal3.handover import (
    HandoverDecision,
    Ownership,
    baremetal_decision,
    machine_api_decision,
    ownership_of,
)
from quarterdeck.metal3.inspect import status_of
from quarterdeck.metal3.names import BAREMETAL_OWNS, MACHINE_API_OWNS
from quarterdeck.metal3.part import (
    LOOK_PERIOD,
    Trouble,
    later_trouble,
    look_period,
    reported_state,
)
from quarterdeck.metal3.platform import BareMetal, OtherPlatform, UnknownPlatform, platform_of
from quarterdeck.metal3.progress import progress
from quarterdeck.metal3.state import REMEDY, State, StateReason, with_remedy

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINE, CLAIMED, BOTH, NEITHER = (
    Ownership(machine_api=True, baremetal=False),
    Ownership(machine_api=False, baremetal=True),
    Ownership(machine_api=True, baremetal=True),
    Ownership(machine_api=False, baremetal=False),
)


@pytest.mark.parametrize(
    ("found", "exists", "gated", "ungated"),
    [
        (None, False, HandoverDecision.CREATE, HandoverDecision.CREATE),
        (None, True, HandoverDecision.STAND_DOWN, HandoverDecision.CREATE),
        (MINE, False, HandoverDecision.MANAGE, HandoverDecision.MANAGE),
        (MINE, True, HandoverDecision.MANAGE, HandoverDecision.MANAGE),
        (NEITHER, False, HandoverDecision.MANAGE, HandoverDecision.MANAGE),
        (NEITHER, True, HandoverDecision.MANAGE, HandoverDecision.MANAGE),
        (CLAIMED, True, HandoverDecision.STAND_DOWN, HandoverDecision.MANAGE),
        (BOTH, True, HandoverDecision.STAND_DOWN, HandoverDecision.MANAGE),
        (CLAIMED, False, HandoverDecision.CLAIM, HandoverDecision.MANAGE),
        (BOTH, False, HandoverDecision.CLAIM, HandoverDecision.MANAGE),
    ],
)
def test_the_table_of_the_machine_api_operator(
    found: Ownership | None, exists: bool, gated: HandoverDecision, ungated: HandoverDecision
) -> None:
    assert machine_api_decision(found, baremetal_exists=exists) is gated
    assert machine_api_decision(found, baremetal_exists=exists, gated=False) is ungated


@pytest.mark.parametrize(
    ("found", "decision"),
    [
        (None, HandoverDecision.CREATE),
        (MINE, HandoverDecision.CLAIM),
        (NEITHER, HandoverDecision.CLAIM),
        (BOTH, HandoverDecision.CLAIM),
        (CLAIMED, HandoverDecision.MANAGE),
    ],
)
def test_the_baremetal_operator_claims_what_is_not_its_own_alone(
    found: Ownership | None, decision: HandoverDecision
) -> None:
    assert baremetal_decision(found, own_exists=True) is decision
    assert baremetal_decision(found, own_exists=False) is HandoverDecision.STAND_DOWN


def deployment(*annotations: str, **status: Any) -> Object:
    return {
        "metadata": {
            "generation": 2,
            "annotations": dict.fromkeys(annotations, ""),
            "managedFields": [{"manager": "quarterdeck-baremetal", "operation": "Apply"}],
        },
        "spec": {"replicas": 1, "template": {}},
        "status": {"observedGeneration": 2, **status},
    }


@pytest.mark.parametrize(
    ("annotations", "owner"),
    [
        ([], ""),
        ([MACHINE_API_OWNS], "machine-api"),
        ([BAREMETAL_OWNS], "baremetal"),
        ([MACHINE_API_OWNS, BAREMETAL_OWNS], "baremetal"),
    ],
)
def test_of_two_owners_the_baremetal_operator_counts(annotations: list[str], owner: str) -> None:
    found = ownership_of(deployment(*annotations))
    assert found is not None
    assert found.owner == owner


READY = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
LATE = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]
REFUSED = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}]


REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "metal3-5d4c8b9f6",
    "uid": "1",
    "controller": True,
}


def pod(*, reason: str, field: str = "containerStatuses", **metadata: Any) -> Object:
    status = {"name": "metal3-httpd", "state": {"waiting": {"reason": reason}}}
    return {"metadata": {"ownerReferences": [REPLICA_SET], **metadata}, "status": {field: [status]}}


@pytest.mark.parametrize(
    ("found", "pods", "reason"),
    [
        pytest.param(deployment(**READY), [], StateReason.COMPLETE, id="complete"),
        pytest.param(deployment(), [], StateReason.SYNCING, id="under way"),
        pytest.param(
            deployment(**READY, observedGeneration=1),
            [],
            StateReason.SYNCING,
            id="not observed yet",
        ),
        pytest.param(deployment(conditions=LATE), [], StateReason.TIMED_OUT, id="too long"),
        pytest.param(
            deployment(conditions=REFUSED), [], StateReason.SYNCING, id="pods are refused"
        ),
        pytest.param(
            deployment(conditions=[*REFUSED, *LATE]),
            [],
            StateReason.TIMED_OUT,
            id="refused too long",
        ),
        pytest.param(
            deployment(), [pod(reason="CrashLoopBackOff")], StateReason.CRASH_LOOPING, id="crashes"
        ),
        pytest.param(
            deployment(conditions=LATE),
            [pod(reason="CrashLoopBackOff", field="initContainerStatuses")],
            StateReason.CRASH_LOOPING,
            id="a crash says more than the time",
        ),
        pytest.param(
            deployment(**READY),
            [pod(reason="CrashLoopBackOff", deletionTimestamp="now")],
            StateReason.COMPLETE,
            id="a pod that goes does not count",
        ),
        pytest.param(
            deployment(**READY),
            [pod(reason="CrashLoopBackOff", ownerReferences=[])],
            StateReason.COMPLETE,
            id="a pod that somebody gave the label does not count",
        ),
        pytest.param(
            deployment(**READY),
            [pod(reason="CrashLoopBackOff", ownerReferences=[{**REPLICA_SET, "name": "web-1"}])],
            StateReason.COMPLETE,
            id="nor does the pod of another Deployment",
        ),
        pytest.param(
            deployment(), [pod(reason="ContainerCreating")], StateReason.SYNCING, id="it starts"
        ),
    ],
)
def test_the_state_of_a_roll_out(found: Object, pods: list[Object], reason: StateReason) -> None:
    assert progress(found, pods, NOW).reason is reason


def container(restarts: int, state: Object, *, ran: float, ago: float) -> Object:
    """A container whose run before lasted for these minutes, and ended these minutes ago."""
    ended = NOW - timedelta(minutes=ago)
    run = {"startedAt": format_time(ended - timedelta(minutes=ran)), "exitCode": 1}
    last = {"terminated": run | {"finishedAt": format_time(ended)}}
    return {"name": "metal3-httpd", "restartCount": restarts, "state": state, "lastState": last}


DONE = {"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T11:59:00Z"}}


@pytest.mark.parametrize(
    ("field", "one", "crashes"),
    [
        pytest.param("containerStatuses", container(3, {}, ran=1, ago=1), True, id="it runs"),
        pytest.param("containerStatuses", container(3, {}, ran=9, ago=9), True, id="for minutes"),
        pytest.param("containerStatuses", container(2, {}, ran=1, ago=1), False, id="seldom yet"),
        pytest.param("containerStatuses", container(9, {}, ran=1, ago=10), False, id="long ago"),
        pytest.param("containerStatuses", container(9, {}, ran=60, ago=1), False, id="it ran long"),
        pytest.param("containerStatuses", container(3, DONE, ran=1, ago=9), True, id="it ended"),
        pytest.param("initContainerStatuses", container(3, {}, ran=1, ago=1), True, id="first"),
        pytest.param(
            "initContainerStatuses", container(3, DONE, ran=1, ago=1), False, id="first, and done"
        ),
    ],
)
def test_a_container_that_runs_between_two_crashes_still_crashes(
    field: str, one: Object, crashes: bool
) -> None:
    """Otherwise the operator would be Degraded and not, with each restart."""
    pods = [{"metadata": {"ownerReferences": [REPLICA_SET]}, "status": {field: [one]}}]
    state = progress(deployment(**READY), pods, NOW)
    assert state.reason is (StateReason.CRASH_LOOPING if crashes else StateReason.COMPLETE)
    if crashes:
        assert state.valid_until is not None
        assert NOW < state.valid_until <= NOW + timedelta(minutes=10)
        after = progress(deployment(**READY), pods, state.valid_until)
        assert after.reason is StateReason.COMPLETE


def test_what_cannot_be_read_for_long_is_reported_and_counts_no_seconds() -> None:
    state, later = State(StateReason.COMPLETE, "fine"), NOW + timedelta(seconds=10)
    first = later_trouble(None, "could not follow secrets for 61 s: no", NOW)
    assert reported_state(state, first, NOW) == state, "caches fill for a moment"
    second = later_trouble(first, "could not follow secrets for 71 s: no", later)
    said = State(StateReason.CANNOT_READ, "could not follow secrets for 61 s: no")
    assert reported_state(state, second, later) == said
    third = later_trouble(second, "waiting for pods: forbidden", later)
    assert reported_state(state, third, later).message == "waiting for pods: forbidden"
    assert reported_state(state, later_trouble(third, "", later), later) == state


@pytest.mark.parametrize(("seconds", "period"), [(0, 1), (1, 1), (5, 5), (30, 10), (1e300, 10)])
def test_who_gives_a_watch_less_time_looks_more_often(seconds: float, period: float) -> None:
    assert look_period(seconds).total_seconds() == period


def test_a_missing_right_is_reported_with_what_to_do() -> None:
    refused = 'waiting for secrets: 403 Forbidden: secrets is forbidden: User "x" cannot list them'
    state = reported_state(
        State(StateReason.COMPLETE, "fine"), Trouble(NOW, refused), NOW + LOOK_PERIOD
    )
    assert state == State(StateReason.CANNOT_READ, f"{refused}; {REMEDY}")
    assert with_remedy("pods is forbidden: exceeded quota") == "pods is forbidden: exceeded quota"


def test_an_annotation_is_no_roll_out() -> None:
    """The generation rises with it; a changed spec is one, and so is a pod that is not ready."""
    annotated = deployment(**READY, observedGeneration=1)
    spec = annotated["spec"]
    assert progress(annotated, [], NOW, ran_with=spec).reason is StateReason.COMPLETE
    assert (
        progress(annotated, [], NOW, ran_with={**spec, "replicas": 2}).reason is StateReason.SYNCING
    )
    not_ready = deployment(**{**READY, "availableReplicas": 0}, observedGeneration=1)
    assert progress(not_ready, [], NOW, ran_with=spec).reason is StateReason.SYNCING


def infrastructure(status: Object) -> Infrastructure:
    return msgspec.convert(
        {"metadata": {"name": "cluster"}, "spec": {}, "status": status}, Infrastructure
    )


@pytest.mark.parametrize(
    ("found", "platform"),
    [
        (infrastructure({"platformStatus": {"type": "BareMetal"}}), BareMetal()),
        (infrastructure({"platform": "BareMetal"}), BareMetal()),
        (infrastructure({"platform": "AWS"}), OtherPlatform("AWS")),
        (
            infrastructure({"platform": "BareMetal", "platformStatus": {"type": "None"}}),
            OtherPlatform("None"),
        ),
    ],
)
def test_the_platform_is_read_from_the_newer_field_first(
    found: Infrastructure, platform: object
) -> None:
    assert platform_of(found) == platform


@pytest.mark.parametrize("found", [None, infrastructure({})])
def test_a_platform_that_nobody_names_is_unknown(found: Infrastructure | None) -> None:
    assert isinstance(platform_of(found), UnknownPlatform)


@pytest.mark.parametrize(
    ("found", "running", "reported", "advice"),
    [
        pytest.param(deployment(BAREMETAL_OWNS), ["baremetal"], ["baremetal"], "", id="well"),
        pytest.param(
            deployment(BAREMETAL_OWNS),
            ["machine-api"],
            ["baremetal", "machine-api"],
            "kubectl delete clusteroperator baremetal",
            id="half removed",
        ),
        pytest.param(
            deployment(BAREMETAL_OWNS, MACHINE_API_OWNS),
            ["baremetal"],
            ["baremetal"],
            "both",
            id="both annotations",
        ),
        pytest.param(None, ["machine-api"], [], "", id="nothing there yet"),
    ],
)
def test_the_advice_for_a_cluster(
    found: Object | None, running: list[str], reported: list[str], advice: str
) -> None:
    status = status_of("BareMetal", found, running, reported)
    assert advice in status.advice
    assert bool(status.advice) is bool(advice)
    assert status_of("None", found, running, reported).advice == ""


def test_a_field_manager_cannot_forge_a_fact() -> None:
    metadata = {"managedFields": [{"manager": "x\nmanaged by  nobody"}]}
    live = {"metadata": metadata, "spec": {"template": {}}}
    found = status_of("Bare\nMetal", live, [], [])
    assert len(as_facts(found).splitlines()) == 7
