"""Which changes wake whom, when a roll-out becomes a phase, and what a record of Services gives."""

import base64
import json
import zlib
from typing import Any

import msgspec
import pytest
from tests.unit.operators.subscriptions.catalogs import csv

from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion, InstallPlan
from quarterdeck.operators.subscriptions.install.deployer import deployment_changed
from quarterdeck.operators.subscriptions.install.phase import (
    OBSERVED_WITHIN,
    ROLL_OUT_GRACE_PERIOD,
    DeploymentResult,
    Phase,
    PhaseResult,
    phase_of_deployments,
    seconds_unchanged,
)
from quarterdeck.operators.subscriptions.install.records import packed
from quarterdeck.operators.subscriptions.install.services import (
    desired_services,
    services_record,
)
from quarterdeck.operators.subscriptions.names import SERVICES
from quarterdeck.operators.subscriptions.subscribe import csv_changed, is_being_completed
from quarterdeck.status import rollout


def version(**metadata: Any) -> ClusterServiceVersion:
    made = csv("a", "1.0.0")
    made["metadata"] |= {"namespace": "ns", "uid": "u", "generation": 1, **metadata}
    made["status"] = {"phase": "Succeeded", "observedGeneration": 1}
    return msgspec.convert(made, ClusterServiceVersion)


def live(generation: int = 2, observed: int = 2, **metadata: Any) -> Object:
    return {
        "metadata": {"name": "d", "generation": generation, **metadata},
        "spec": {"replicas": 1},
        "status": {
            "observedGeneration": observed,
            "replicas": 1,
            "updatedReplicas": 1,
            "availableReplicas": 1,
        },
    }


def test_a_status_that_says_the_same_wakes_nobody() -> None:
    later = live()
    later["status"]["conditions"] = [{"type": "Available", "status": "True"}]
    later["metadata"] |= {"resourceVersion": "9", "generation": 3}
    later["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "2"}
    later["status"]["observedGeneration"] = 3
    assert not deployment_changed(live(), later)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({**live(3, 3), "spec": {"replicas": 1, "paused": False}}, id="its spec"),
        pytest.param(live(observed=1), id="how far it is"),
        pytest.param(live(labels={"a": "b"}), id="labels"),
        pytest.param(live(annotations={"a": "b"}), id="annotations"),
        pytest.param(live(ownerReferences=[]), id="owner"),
        pytest.param(live(managedFields=[{"manager": "x"}]), id="whose fields they are"),
        pytest.param(live(deletionTimestamp="2026-01-01T00:00:00Z"), id="its deletion"),
        pytest.param(None, id="that it is gone"),
    ],
)
def test_each_other_change_of_a_deployment_counts(other: Object | None) -> None:
    assert deployment_changed(live(), other)
    assert deployment_changed(other, live())


def test_a_subscription_is_woken_by_the_phase_of_its_version_and_not_by_the_message() -> None:
    was = version()
    told = msgspec.structs.replace(was.status, message="2 of 3 replicas are available")
    assert not csv_changed(was, msgspec.structs.replace(was, status=told))
    failed = msgspec.structs.replace(was.status, phase="Failed")
    assert csv_changed(was, msgspec.structs.replace(was, status=failed))
    assert csv_changed(was, version(annotations={"quarterdeck.dev/subscription": "other"}))
    assert csv_changed(was, version(generation=2))
    assert csv_changed(was, None)


@pytest.mark.parametrize(
    ("spec", "phase", "waits"),
    [
        pytest.param({}, None, True, id="killed before it said so"),
        pytest.param({}, "Complete", False, id="complete"),
        pytest.param({}, "Failed", False, id="failed: it may never be complete"),
        pytest.param({"approved": False}, None, False, id="it waits for somebody"),
        pytest.param({"clusterServiceVersionNames": ["b"]}, None, False, id="of another version"),
    ],
)
def test_the_next_step_waits_for_the_plan_of_the_installed_version(
    spec: Object, phase: str | None, waits: bool
) -> None:
    """Otherwise a kill between the version and its plan's status would lose the plan."""
    told = {"approval": "Automatic", "approved": True, "clusterServiceVersionNames": ["a"], **spec}
    made = {"metadata": {"name": "plan"}, "spec": told, "status": {"phase": phase}}
    assert is_being_completed(msgspec.convert(made, InstallPlan), "a") is waits


WAITING = rollout.Waiting("DeploymentNotReady", "0 of 1 replicas are available")


def result(*, is_observed: bool = True) -> PhaseResult:
    return phase_of_deployments(
        [
            DeploymentResult(name="d", is_applied=True, outcome=WAITING, is_observed=is_observed),
            DeploymentResult(name="e", is_applied=True, outcome=rollout.DONE),
        ]
    )


def test_a_version_that_works_is_installing_only_when_a_roll_out_lasts() -> None:
    assert result().phase == Phase.INSTALLING
    assert seconds_unchanged(version(), result()) == ROLL_OUT_GRACE_PERIOD
    assert seconds_unchanged(version(), result(is_observed=False)) == OBSERVED_WITHIN


@pytest.mark.parametrize("phase", [one for one in Phase if one != Phase.INSTALLING])
def test_every_other_phase_is_written_at_once(phase: Phase) -> None:
    found = PhaseResult(phase=phase, reason="r", message="m", is_observed=False)
    assert seconds_unchanged(version(), found) == 0


@pytest.mark.parametrize("phase", [None, *(one for one in Phase if one != Phase.SUCCEEDED)])
def test_a_version_that_did_not_work_yet_says_what_it_does(phase: str | None) -> None:
    made = version()
    status = msgspec.structs.replace(made.status, phase=phase)
    assert seconds_unchanged(msgspec.structs.replace(made, status=status), result()) == 0


def test_a_changed_version_says_what_it_does() -> None:
    assert seconds_unchanged(version(generation=2), result()) == 0


SERVICE: Object = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s", "namespace": "elsewhere", "labels": {"a": "b"}},
    "spec": {"ports": [{"port": 80}], "selector": None},
}


def recorded(text: str) -> ClusterServiceVersion:
    return version(annotations={SERVICES: text})


def test_recorded_services_come_back_in_the_namespace_of_the_version() -> None:
    text = services_record([SERVICE])
    assert text is not None
    (made,) = desired_services(recorded(text))
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("s", "ns")
    assert made["metadata"]["labels"]["a"] == "b"
    assert made["metadata"]["ownerReferences"][0]["name"] == "a"
    assert made["spec"] == {"ports": [{"port": 80}]}
    assert desired_services(version()) == []


def entry(**metadata: Any) -> Object:
    return {"metadata": {"name": "s", "labels": {}, "annotations": {}, **metadata}, "spec": {}}


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("text", id="no list"),
        pytest.param([1, None, "x"], id="no objects"),
        pytest.param([entry(name="../x")], id="no name"),
        pytest.param([entry(name=7)], id="a number for a name"),
        pytest.param([entry(labels=[])], id="labels that are none"),
        pytest.param([entry(annotations={"a": 1})], id="annotations that are none"),
        pytest.param([{**entry(), "spec": "x"}], id="no spec"),
    ],
)
def test_what_somebody_else_recorded_is_left_out(value: object) -> None:
    text = packed(value)
    assert text is not None
    assert desired_services(recorded(text)) == []


def test_a_record_cannot_make_two_services_of_one_name_or_marks_of_ours() -> None:
    claims = {"quarterdeck.dev/csv": "other", "mine": "1"}
    text = packed([entry(), {**entry(labels=claims), "spec": {"type": "ClusterIP"}}])
    assert text is not None
    (made,) = desired_services(recorded(text))
    assert made["spec"] == {"type": "ClusterIP"}
    assert made["metadata"]["labels"]["quarterdeck.dev/csv"] == "a"
    assert made["metadata"]["labels"]["mine"] == "1"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x", id="no base64"),
        pytest.param(base64.b64encode(b"x").decode(), id="not compressed"),
        pytest.param(
            base64.b64encode(zlib.compress(json.dumps(" " * (3 << 20)).encode())).decode(),
            id="a bomb",
        ),
        pytest.param(base64.b64encode(zlib.compress(b"[" * 100_000)).decode(), id="without an end"),
    ],
)
def test_a_record_that_cannot_be_read_has_no_services(text: str) -> None:
    assert desired_services(recorded(text)) == []
