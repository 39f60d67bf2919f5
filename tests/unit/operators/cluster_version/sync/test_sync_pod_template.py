"""Who has set what in a pod template's spec, and how ownership of it is taken."""

from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.operators.cluster_version.sync.autoscaled import (
    has_replicas,
    target,
    without_replicas,
)
from quarterdeck.operators.cluster_version.sync.pod_template import (
    as_ours,
    describe_owners,
    foreign_fields,
    replaced_fields,
)
from quarterdeck.payload.model import ObjectIdentity

OURS = "us"
WHO = ObjectIdentity("apps", "Deployment", "ns", "x")
POD = {"containers": [{"name": "main", "image": "a:1", "ports": [{"containerPort": 80}]}]}
OUR_FIELDS: Object = {
    "f:containers": {
        'k:{"name":"main"}': {
            ".": {},
            "f:name": {},
            "f:image": {},
            "f:ports": {
                'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
            },
        }
    }
}


def live_pod(**more: Any) -> Object:
    """The pod as the server has it, with a few defaults."""
    main = {
        "name": "main",
        "image": "a:1",
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
    }
    return {"containers": [main], "restartPolicy": "Always", **more}


def entry(manager: str, fields: Object, operation: str = "Update", **rest: str) -> Object:
    tree = {"f:spec": {"f:template": {"f:spec": fields}}}
    return {"manager": manager, "operation": operation, "fieldsV1": tree, **rest}


def deployment(pod: Object, *entries: Object) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x", "namespace": "ns", "managedFields": list(entries)},
        "spec": {"template": {"spec": pod}},
    }


def found(pod: Object, *entries: Object, want: Object = POD, who: ObjectIdentity = WHO) -> Any:
    ours = entry(OURS, OUR_FIELDS, "Apply")
    return foreign_fields(who, deployment(pod, ours, *entries), deployment(want), OURS)


@pytest.mark.parametrize(
    ("pod", "fields", "path"),
    [
        pytest.param({"hostPID": True}, {"f:hostPID": {}}, "hostPID", id="a host setting"),
        pytest.param(
            {"securityContext": {"runAsUser": 0}},
            {"f:securityContext": {".": {}, "f:runAsUser": {}}},
            "securityContext",
            id="a security context, by its highest field",
        ),
        pytest.param(
            {"nodeSelector": {"a": "b"}},
            {"f:nodeSelector": {}},
            "nodeSelector",
            id="a map that is owned whole",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"f:volumes": {".": {}, 'k:{"name":"v"}': {".": {}, "f:name": {}, "f:emptyDir": {}}}},
            "volumes",
            id="a list that the release does not have",
        ),
    ],
)
def test_a_field_of_somebody_else_is_foreign(pod: Object, fields: Object, path: str) -> None:
    assert found(live_pod(**pod), entry("them", fields)) == {"them": [f"spec.template.spec.{path}"]}


def test_an_item_in_a_list_of_ours_is_named_by_its_keys() -> None:
    pod = live_pod()
    pod["containers"].append({"name": "sidecar", "image": "b:1"})
    theirs: Object = {
        "f:containers": {'k:{"name":"sidecar"}': {".": {}, "f:name": {}, "f:image": {}}}
    }
    assert found(pod, entry("them", theirs)) == {
        "them": ["spec.template.spec.containers[name=sidecar]"]
    }


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"f:restartPolicy": {}}, id="what has the server's default"),
        pytest.param({"f:schedulerName": {}}, id="what is not there any more"),
        pytest.param(OUR_FIELDS, id="what they want as we do"),
        pytest.param({"f:containers": {'k:{"name":"main"}': {".": {}}}}, id="an item of ours"),
    ],
)
def test_what_changes_nothing_is_not_foreign(fields: Object) -> None:
    assert found(live_pod(), entry("them", fields)) == {}


def test_a_default_that_nobody_owns_is_not_foreign() -> None:
    assert found(live_pod(terminationGracePeriodSeconds=30, unheardOf="value")) == {}


def test_the_template_of_a_kind_without_pods_is_not_looked_at() -> None:
    other = WHO._replace(kind="Sermon")
    assert found(live_pod(hostPID=True), entry("them", {"f:hostPID": {}}), who=other) == {}


def test_what_a_removed_field_left_behind_is_foreign_though_nobody_owns_it() -> None:
    pod = live_pod(serviceAccountName="evil", serviceAccount="evil")
    at = "spec.template.spec"
    assert found(pod) == {
        "": [
            f"{at}.serviceAccountName",
            f"{at}.serviceAccount",
        ]
    }
    assert found(pod, want={**POD, "serviceAccountName": "evil"}) == {}


def test_a_value_that_only_somebody_else_owns_is_replaced() -> None:
    pod = live_pod()
    pod["containers"][0]["image"] = "evil:1"
    image: Object = {"f:containers": {'k:{"name":"main"}': {"f:image": {}}}}
    theirs = entry("them", image)
    expected = {"them": ["spec.template.spec.containers[name=main].image"]}
    assert replaced_fields(WHO, deployment(pod, theirs), deployment(POD), OURS) == expected
    # An older release's value, which both own, is not their doing.
    both = deployment(pod, entry(OURS, OUR_FIELDS, "Apply"), theirs)
    assert replaced_fields(WHO, both, deployment(POD), OURS) == {}


def test_ownership_of_the_pod_moves_and_the_rest_stays() -> None:
    theirs = entry("them", {"f:hostPID": {}})
    theirs["fieldsV1"]["f:metadata"] = {"f:labels": {"f:team": {}}}
    only = entry("other", {"f:hostIPC": {}})
    ours = entry(OURS, OUR_FIELDS, "Apply", time="then")
    created = entry(OURS, {"f:restartPolicy": {}})
    status = {
        "manager": "kcm",
        "operation": "Update",
        "subresource": "status",
        "fieldsV1": {"f:status": {}},
    }
    live = deployment(live_pod(hostPID=True, hostIPC=True), theirs, only, ours, created, status)
    first, second, last = as_ours(WHO, live, OURS)
    assert first == {**theirs, "fieldsV1": {"f:metadata": {"f:labels": {"f:team": {}}}}}
    assert second == status
    assert (last["manager"], last["operation"], last["time"]) == (OURS, "Apply", "then")
    pod = last["fieldsV1"]["f:spec"]["f:template"]["f:spec"]
    assert {"f:hostPID", "f:hostIPC", "f:restartPolicy", "f:containers"} == pod.keys()
    # A default that nobody owned comes back by itself.
    assert "f:imagePullPolicy" in pod["f:containers"]['k:{"name":"main"}']


def test_ownership_can_be_taken_of_an_object_that_we_never_wrote() -> None:
    live = deployment(live_pod(hostPID=True), entry("them", {"f:hostPID": {}}))
    (last,) = as_ours(WHO, live, OURS)
    assert (last["manager"], last["operation"], last["fieldsType"]) == (OURS, "Apply", "FieldsV1")


def test_people_are_told_who_set_what() -> None:
    assert describe_owners({"b": ["x", "y"], "a": ["z"]}) == "z (set by a); x, y (set by b)"
    assert describe_owners({"": ["x"]}) == "x (set by nobody who is recorded)"


# --- autoscalers


def test_an_autoscaler_names_an_object_of_its_own_namespace_in_any_version() -> None:
    ref = {"apiVersion": "apps/v1beta9", "kind": "Deployment", "name": "x"}
    autoscaler = {"metadata": {"namespace": "ns"}, "spec": {"scaleTargetRef": ref}}
    assert target(autoscaler) == WHO


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], {}, id="theirs is left to them"),
        pytest.param(
            [{"manager": OURS, "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}}],
            {"replicas": 5},
            id="a number of ours is kept as it is",
        ),
    ],
)
def test_replicas_of_an_autoscaled_object_are_as_they_are(
    entries: list[Object], expected: Object
) -> None:
    live = deployment({}, *entries)
    live["spec"]["replicas"] = 5
    desired = {"spec": {"replicas": 2}}
    assert has_replicas(desired)
    assert without_replicas(desired, live, OURS) == {"spec": expected}


def test_who_owns_nothing_any_more_is_no_reason_to_leave_it() -> None:
    live = deployment(live_pod(hostPID=True))
    found = foreign_fields(WHO, live, deployment(POD), OURS)
    assert found == {"": ["spec.template.spec"]}
    (last,) = as_ours(WHO, live, OURS)
    pod = last["fieldsV1"]["f:spec"]["f:template"]["f:spec"]
    assert "f:hostPID" in pod
    port = 'k:{"containerPort":80,"protocol":"TCP"}'
    assert port in pod["f:containers"]['k:{"name":"main"}']["f:ports"]
