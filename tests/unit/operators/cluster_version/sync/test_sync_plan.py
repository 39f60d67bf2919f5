"""What is to be done about one manifest, and what it wants of its object."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.meta import Object
from quarterdeck.operators.cluster_version.sync.desired import (
    JOB_HASH,
    desired_object,
    expected_versions,
    job_hash,
)
from quarterdeck.operators.cluster_version.sync.plan import (
    FIELD_MANAGER,
    Apply,
    Delete,
    Leave,
    Plan,
    plan,
)
from quarterdeck.operators.cluster_version.sync.progress import DONE, Done, Failed, Waiting
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import Manifest

CREATE_ONLY = "release.openshift.io/create-only"
DELETE = "release.openshift.io/delete"


def manifest(api_version: str = "v1", kind: str = "ConfigMap", **rest: Any) -> Manifest:
    annotations = rest.pop("annotations", None)
    metadata = {"name": "x", "namespace": "ns"} | (
        {"annotations": annotations} if annotations else {}
    )
    body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
    return Manifest(
        file="0000_10_a_1.yaml", document=1, line=1, run_level=10, component="a", object=body
    )


def live(wanted: Manifest, manager: str = FIELD_MANAGER, **metadata: Any) -> Object:
    """The manifest's object as the server would have it after an apply by the manager."""
    desired = desired_object(wanted, namespaced=True)
    content = {k: v for k, v in desired.items() if k not in ("apiVersion", "kind", "metadata")}
    fields = {f"f:{field}": _fields(value) for field, value in content.items()}
    marks = desired["metadata"].get("annotations") or {}
    if marks:
        fields["f:metadata"] = {"f:annotations": {f"f:{name}": {} for name in marks}}
    entry = {"manager": manager, "operation": "Apply", "fieldsV1": fields}
    meta = {"uid": "1", "resourceVersion": "1", "managedFields": [entry]}
    return desired | {"metadata": desired["metadata"] | meta | metadata}


def _fields(value: Any) -> Object:
    if isinstance(value, dict):
        return {f"f:{field}": _fields(inner) for field, inner in value.items()}
    return {}


def planned(wanted: Manifest, there: Object | None, mode: Mode = Mode.UPDATING) -> Plan:
    return plan(wanted, desired_object(wanted, namespaced=True), there, mode)


@pytest.mark.parametrize("mode", Mode)
def test_what_is_not_there_is_written_and_what_is_as_wanted_is_left(mode: Mode) -> None:
    wanted = manifest(data={"a": "1"})
    assert planned(wanted, None, mode) == Apply(())
    assert planned(wanted, live(wanted), mode) == Leave()


@pytest.mark.parametrize("mode", Mode)
def test_a_difference_is_written_and_named(mode: Mode) -> None:
    there = live(manifest(data={"a": "1", "b": "2"}))
    assert planned(manifest(data={"a": "2"}), there, mode) == Apply(("data.a", "data.b"))


@pytest.mark.parametrize("mode", Mode)
def test_create_only_is_left_as_it_is_found(mode: Mode) -> None:
    wanted = manifest(data={"a": "1"}, annotations={CREATE_ONLY: "true"})
    assert planned(wanted, None, mode) == Apply(())
    assert planned(wanted, live(manifest(data={"a": "theirs"}), "kubectl"), mode) == Leave()


def test_delete_counts_only_while_updating() -> None:
    wanted = manifest(annotations={DELETE: "true"})
    there = live(manifest())
    assert isinstance(planned(wanted, there), Delete)
    assert planned(wanted, None) == DONE
    for mode in (Mode.INITIALIZING, Mode.RECONCILING):
        assert planned(wanted, there, mode) == DONE


@given(st.sampled_from(Mode), st.text().filter(lambda text: text != "true"))
def test_another_value_of_delete_neither_deletes_nor_writes(mode: Mode, value: str) -> None:
    wanted = manifest(annotations={DELETE: value})
    for there in (None, live(manifest(data={"a": "1"}))):
        found = planned(wanted, there, mode)
        assert isinstance(found, Failed)
        assert found.reason == "DeleteAnnotationInvalid"


def test_to_create_only_and_to_delete_is_a_contradiction() -> None:
    wanted = manifest(annotations={DELETE: "true", CREATE_ONLY: "true"})
    assert isinstance(planned(wanted, live(manifest())), Failed)


@pytest.mark.parametrize("marks", [None, {CREATE_ONLY: "true"}, {DELETE: "true"}])
def test_what_is_being_deleted_is_waited_for(marks: Object | None) -> None:
    there = live(manifest(), deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a/b"])
    found = planned(manifest(annotations=marks), there)
    assert isinstance(found, Waiting)
    assert "a/b" in found.message


JOB = ("batch/v1", "Job")


def test_a_job_of_another_spec_is_made_anew_and_one_of_the_same_is_left() -> None:
    there = live(manifest(*JOB, spec={"template": {"spec": {"image": "1"}}}))
    assert planned(manifest(*JOB, spec={"template": {"spec": {"image": "1"}}}), there) == Leave()
    other = manifest(*JOB, spec={"template": {"spec": {"image": "2"}}})
    assert isinstance(planned(other, there), Delete)


def test_a_job_that_somebody_else_made_is_compared() -> None:
    there = live(manifest(*JOB, spec={"template": {"spec": {"image": "1"}}}), annotations={})
    assert planned(manifest(*JOB, spec={"template": {"spec": {"image": "1"}}}), there) == Leave()
    other = manifest(*JOB, spec={"template": {"spec": {"image": "2"}}})
    assert isinstance(planned(other, there), Delete)


def test_a_job_is_left_alone_on_a_settled_cluster() -> None:
    job = manifest(*JOB, spec={"template": {}})
    other = live(manifest(*JOB, spec={"template": {"spec": {}}}))
    assert planned(job, None, Mode.RECONCILING) == planned(job, other, Mode.RECONCILING) == DONE


def test_a_binding_to_another_role_is_made_anew() -> None:
    binding = ("rbac.authorization.k8s.io/v1", "RoleBinding")
    there = live(manifest(*binding, roleRef={"kind": "Role", "name": "a"}))
    assert isinstance(
        planned(manifest(*binding, roleRef={"kind": "Role", "name": "b"}), there), Delete
    )


def definition(*versions: str) -> Manifest:
    served = [{"name": version, "served": True} for version in versions]
    spec = {"group": "example.test", "versions": served}
    return manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec=spec)


@pytest.mark.parametrize("mode", Mode)
def test_a_foreign_definition_is_never_written(mode: Mode) -> None:
    there = live(definition("v1"), "cluster-version-operator")
    assert isinstance(planned(definition("v1"), there, mode), Done)
    missing = planned(definition("v1", "v2"), there, mode)
    assert isinstance(missing, Failed)
    assert "v2" in missing.message


@pytest.mark.parametrize("manager", [FIELD_MANAGER, "quarterdeck-local", "quarterdeck-install"])
def test_a_definition_that_a_program_of_ours_wrote_is_ours(manager: str) -> None:
    found = planned(definition("v1", "v2"), live(definition("v1"), manager))
    assert isinstance(found, Apply)


def test_status_and_nulls_are_not_applied() -> None:
    wanted = manifest(spec={"a": None, "b": [{"c": None, "d": 1}]}, status={"x": 1})
    desired = desired_object(wanted, namespaced=True)
    assert desired["spec"] == {"b": [{"d": 1}]}
    assert "status" not in desired


def test_what_has_no_nulls_is_not_copied() -> None:
    wanted = manifest(data={"a": "1"})
    assert desired_object(wanted, namespaced=True)["data"] is wanted.object["data"]


def test_a_namespace_in_an_object_that_is_in_none_is_dropped() -> None:
    assert "namespace" not in desired_object(manifest(), namespaced=False)["metadata"]
    assert manifest().object["metadata"]["namespace"] == "ns"


def test_the_text_in_a_secret_becomes_data() -> None:
    secret = manifest("v1", "Secret", stringData={"a": "b"}, data={"c": "ZA=="})
    assert desired_object(secret, namespaced=True)["data"] == {"a": "Yg==", "c": "ZA=="}


def test_a_cluster_operator_is_created_empty() -> None:
    operator = manifest(
        "config.openshift.io/v1",
        "ClusterOperator",
        status={"versions": [{"name": "operator", "version": "1.2"}, "broken", {"name": "x"}]},
    )
    desired = desired_object(operator, namespaced=False)
    assert desired["spec"] == {}
    assert "status" not in desired
    assert expected_versions(operator) == {"operator": "1.2"}


def test_a_jobs_hash_depends_on_its_spec_and_not_on_the_order_of_fields() -> None:
    assert job_hash({"a": 1, "b": 2}) == job_hash({"b": 2, "a": 1}) != job_hash({"a": 1})
    desired = desired_object(manifest(*JOB, spec={"a": 1}), namespaced=True)
    assert desired["metadata"]["annotations"] == {JOB_HASH: job_hash({"a": 1})}
