"""Who manages metal3: the table, the states of a roll-out, and the advice for a cluster."""

from typing import Any

import msgspec
import pytest

from quarterdeck.api.config_v1 import Infrastructure
from quarterdeck.api.meta import Object
from quarterdeck.cli.handover import as_facts
from quarterdeck.metal3.handover import (
    Decision,
    Ownership,
    baremetal_decision,
    machine_api_decision,
    ownership_of,
)
from quarterdeck.metal3.inspect import status_of
from quarterdeck.metal3.names import BAREMETAL_OWNS, MACHINE_API_OWNS
from quarterdeck.metal3.platform import BareMetal, OtherPlatform, UnknownPlatform, platform_of
from quarterdeck.metal3.progress import progress
from quarterdeck.metal3.state import Reason

MINE, CLAIMED, BOTH, NEITHER = (
    Ownership(machine_api=True, baremetal=False),
    Ownership(machine_api=False, baremetal=True),
    Ownership(machine_api=True, baremetal=True),
    Ownership(machine_api=False, baremetal=False),
)


@pytest.mark.parametrize(
    ("found", "exists", "gated", "ungated"),
    [
        (None, False, Decision.CREATE, Decision.CREATE),
        (None, True, Decision.STAND_DOWN, Decision.CREATE),
        (MINE, False, Decision.MANAGE, Decision.MANAGE),
        (MINE, True, Decision.MANAGE, Decision.MANAGE),
        (NEITHER, False, Decision.MANAGE, Decision.MANAGE),
        (NEITHER, True, Decision.MANAGE, Decision.MANAGE),
        (CLAIMED, True, Decision.STAND_DOWN, Decision.MANAGE),
        (BOTH, True, Decision.STAND_DOWN, Decision.MANAGE),
        (CLAIMED, False, Decision.CLAIM, Decision.MANAGE),
        (BOTH, False, Decision.CLAIM, Decision.MANAGE),
    ],
)
def test_the_table_of_the_machine_api_operator(
    found: Ownership | None, exists: bool, gated: Decision, ungated: Decision
) -> None:
    assert machine_api_decision(found, baremetal_exists=exists) is gated
    assert machine_api_decision(found, baremetal_exists=exists, gated=False) is ungated


@pytest.mark.parametrize(
    ("found", "decision"),
    [
        (None, Decision.CREATE),
        (MINE, Decision.CLAIM),
        (NEITHER, Decision.CLAIM),
        (BOTH, Decision.CLAIM),
        (CLAIMED, Decision.MANAGE),
    ],
)
def test_the_baremetal_operator_claims_what_is_not_its_own_alone(
    found: Ownership | None, decision: Decision
) -> None:
    assert baremetal_decision(found, own_exists=True) is decision
    assert baremetal_decision(found, own_exists=False) is Decision.STAND_DOWN


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
        pytest.param(deployment(**READY), [], Reason.COMPLETE, id="complete"),
        pytest.param(deployment(), [], Reason.SYNCING, id="under way"),
        pytest.param(
            deployment(**READY, observedGeneration=1), [], Reason.SYNCING, id="not observed yet"
        ),
        pytest.param(deployment(conditions=LATE), [], Reason.TIMED_OUT, id="too long"),
        pytest.param(deployment(conditions=REFUSED), [], Reason.SYNCING, id="pods are refused"),
        pytest.param(
            deployment(conditions=[*REFUSED, *LATE]), [], Reason.TIMED_OUT, id="refused too long"
        ),
        pytest.param(
            deployment(), [pod(reason="CrashLoopBackOff")], Reason.CRASH_LOOPING, id="crashes"
        ),
        pytest.param(
            deployment(conditions=LATE),
            [pod(reason="CrashLoopBackOff", field="initContainerStatuses")],
            Reason.CRASH_LOOPING,
            id="a crash says more than the time",
        ),
        pytest.param(
            deployment(**READY),
            [pod(reason="CrashLoopBackOff", deletionTimestamp="now")],
            Reason.COMPLETE,
            id="a pod that goes does not count",
        ),
        pytest.param(
            deployment(**READY),
            [pod(reason="CrashLoopBackOff", ownerReferences=[])],
            Reason.COMPLETE,
            id="a pod that somebody gave the label does not count",
        ),
        pytest.param(
            deployment(**READY),
            [pod(reason="CrashLoopBackOff", ownerReferences=[{**REPLICA_SET, "name": "web-1"}])],
            Reason.COMPLETE,
            id="nor does the pod of another Deployment",
        ),
        pytest.param(
            deployment(), [pod(reason="ContainerCreating")], Reason.SYNCING, id="it starts"
        ),
    ],
)
def test_the_state_of_a_roll_out(found: Object, pods: list[Object], reason: Reason) -> None:
    assert progress(found, pods).reason is reason


def test_an_annotation_is_no_roll_out() -> None:
    """The generation rises with it; a changed spec is one, and so is a pod that is not ready."""
    annotated = deployment(**READY, observedGeneration=1)
    spec = annotated["spec"]
    assert progress(annotated, [], ran_with=spec).reason is Reason.COMPLETE
    assert progress(annotated, [], ran_with={**spec, "replicas": 2}).reason is Reason.SYNCING
    not_ready = deployment(**{**READY, "availableReplicas": 0}, observedGeneration=1)
    assert progress(not_ready, [], ran_with=spec).reason is Reason.SYNCING


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
