"""What is wrong with a config: reasons, messages, and which Deployments they concern."""

from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import ConfigEntry, NamedDeployment
from quarterdeck.operators.subscriptions.config.faults import (
    ConfigFailureReason,
    ConfigFault,
    config_faults,
    first_reason,
    message_of,
    selector_faults,
)
from quarterdeck.operators.subscriptions.config.merge import merged
from quarterdeck.operators.subscriptions.config.references import (
    ConfigReference,
    references,
    why_unresolved,
)
from quarterdeck.operators.subscriptions.config.refusals import refused_entries


def deployment(name: str = "etcd-operator", **pod: Any) -> NamedDeployment:
    containers = [{"name": "main", "image": "i", "env": [{"name": "own", "value": "1"}]}]
    spec = {"containers": containers, **pod}
    labels = {"app": name}
    return NamedDeployment(
        name=name, spec={"template": {"metadata": {"labels": labels}, "spec": spec}}
    )


def faults(*config: ConfigEntry, lookup: Any = lambda _reference: "") -> list[str]:
    return [str(one) for one in config_faults(merged(deployment(), config), config, lookup)]


KEY_REF = {"configMapKeyRef": {"name": "special-config", "key": "special.how"}}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        pytest.param(
            ConfigEntry(volume_mounts=({"name": "certs", "mountPath": "/c"},)),
            "config[0].volumeMounts[0]: no volume named certs in Deployment etcd-operator",
            id="mount without a volume",
        ),
        pytest.param(
            ConfigEntry(env=({"name": "A", "value": "1", "valueFrom": KEY_REF},)),
            'config[0].env[0]: "A" has both value and valueFrom (Deployment etcd-operator)',
            id="value and valueFrom",
        ),
        pytest.param(
            ConfigEntry(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}),
            "config[0].resources.requests.cpu: 2 is above the limit 1500m "
            "(Deployment etcd-operator)",
            id="request above limit",
        ),
        pytest.param(
            ConfigEntry(resources={"limits": {"cpu": "-1"}}),
            "config[0].resources.limits.cpu: '-1' is no quantity of 0 or more "
            "(Deployment etcd-operator)",
            id="negative limit",
        ),
    ],
)
def test_faults(entry: ConfigEntry, message: str) -> None:
    assert faults(entry) == [message]


def test_a_volume_of_a_later_entry_counts() -> None:
    mount = ConfigEntry(volume_mounts=({"name": "certs", "mountPath": "/c"},))
    volume = ConfigEntry(volumes=({"name": "certs", "emptyDir": {}},))
    assert faults(mount, volume) == []


def test_the_document_s_example_of_a_key_that_does_not_exist() -> None:
    entry = ConfigEntry(env=({"name": "SPECIAL_LEVEL_KEY", "valueFrom": KEY_REF},))
    found = {"data": {"other": "x"}}
    message = faults(entry, lookup=lambda one: why_unresolved(one, lambda _kind, _name: found))
    assert message == [
        'config[0].env[0]: "SPECIAL_LEVEL_KEY" couldn\'t be applied: ConfigMap special-config has '
        "no key special.how (Deployment etcd-operator)"
    ]


@pytest.mark.parametrize(
    ("objects", "resolved"),
    [
        ({}, False),
        ({"m": {"data": {"k": "v"}}}, True),
        ({"m": {"binaryData": {"k": "v"}}}, True),
        ({"m": {}}, False),
    ],
)
def test_references_to_keys(objects: dict[str, Object], resolved: bool) -> None:
    reference = ConfigReference(
        kind="ConfigMap", name="m", key="k", reason="EnvFailure", field="env[0]"
    )
    assert (why_unresolved(reference, lambda _kind, name: objects.get(name)) == "") is resolved


def test_all_kinds_of_references_and_optional_ones() -> None:
    entry = ConfigEntry(
        env=(
            {"name": "a", "valueFrom": {"secretKeyRef": {"name": "s1", "key": "k"}}},
            {
                "name": "b",
                "valueFrom": {"secretKeyRef": {"name": "x", "key": "k", "optional": True}},
            },
        ),
        env_from=({"configMapRef": {"name": "c1"}}, {"secretRef": {"name": "x", "optional": True}}),
        volumes=(
            {"name": "v", "configMap": {"name": "c2", "items": [{"key": "k", "path": "p"}]}},
            {"name": "w", "secret": {"secretName": "s2"}},
            {"name": "y", "projected": {"sources": [{"secret": {"name": "s3"}}]}},
            {"name": "z", "emptyDir": {}},
        ),
    )
    found = [(one.kind, one.name, one.key, one.reason, one.field) for one in references(entry)]
    assert found == [
        ("Secret", "s1", "k", "EnvFailure", "env[0]"),
        ("ConfigMap", "c1", "", "EnvFromFailure", "envFrom[0]"),
        ("ConfigMap", "c2", "", "VolumeFailure", "volumes[0]"),
        ("ConfigMap", "c2", "k", "VolumeFailure", "volumes[0]"),
        ("Secret", "s2", "", "VolumeFailure", "volumes[1]"),
        ("Secret", "s3", "", "VolumeFailure", "volumes[2]"),
    ]


def test_the_reason_is_the_first_in_the_order_and_the_message_has_all() -> None:
    found = [
        ConfigFault(
            entry=1, reason=ConfigFailureReason.RESOURCE_LIMIT, field="r", deployment="d", cause="x"
        ),
        ConfigFault(
            entry=0, reason=ConfigFailureReason.VOLUME, field="v", deployment="d", cause="y"
        ),
    ]
    assert first_reason(found) == "VolumeFailure"
    assert message_of(found) == "config[1].r: x (Deployment d); config[0].v: y (Deployment d)"


def test_selectors_that_match_nothing() -> None:
    config = [
        ConfigEntry(selector={"matchLabels": {"app": "etcd-operator"}}),
        ConfigEntry(selector={"matchLabels": {"olm.cahash": "123"}}),
        ConfigEntry(containers=("main", "sidecar")),
        ConfigEntry(deployments=("another",)),
        ConfigEntry(selector={"matchExpressions": [{"key": "a", "operator": "Maybe"}]}),
    ]
    found = selector_faults(config, [deployment()])
    assert [(one.entry, one.reason) for one in found] == [
        (1, "NoMatchingPods"),
        (2, "NoMatchingPods"),
        (3, "NoMatchingPods"),
        (4, "InvalidSelector"),
    ]
    assert str(found[0]) == "config[1]: No operator pods found matching selector."
    assert "no container named sidecar" not in str(found[1])
    assert "container named sidecar" in str(found[1])


@pytest.mark.parametrize(
    ("field", "reason", "entry"),
    [
        ("spec.template.spec.containers[0].env[1].name", "EnvFailure", 0),
        ("spec.template.spec.containers[0].env[0].name", None, 0),
        ("spec.template.spec.containers[0].envFrom[0].prefix", "EnvFromFailure", 0),
        ("spec.template.spec.containers[0].volumeMounts[0].mountPath", "VolumeMountFailure", 1),
        ("spec.template.spec.containers[0].resources.limits[cpu]", "ResourceLimitFailure", 1),
        ("spec.template.spec.containers[0].resources.requests", "ResourceRequestFailure", 1),
        ("spec.template.spec.volumes[0].name", "VolumeFailure", 1),
        ("spec.template.spec.tolerations[0].operator", "TolerationFailure", 0),
        ("spec.template.spec.tolerations", "TolerationFailure", 0),
        ("spec.template.spec.nodeSelector", "NodeSelectorFailure", 0),
        ("spec.template.spec.affinity.nodeAffinity.x", "AffinityFailure", 1),
        ("spec.template.metadata.annotations", "AnnotationFailure", 0),
        ("spec.template.spec.containers[7].env[1]", None, 0),
        ("spec.replicas", None, 0),
    ],
)
def test_a_refusal_of_the_server_names_its_entry(
    field: str, reason: str | None, entry: int
) -> None:
    config = [
        ConfigEntry(
            env=({"name": "a b", "value": ""},),
            env_from=({"prefix": " "},),
            tolerations=({"operator": "Never"},),
            node_selector={"-": "-"},
            annotations={"/": ""},
        ),
        ConfigEntry(
            volumes=({"name": "-"},),
            volume_mounts=({"name": "-", "mountPath": ":"},),
            resources={"limits": {"cpu": "1"}},
            affinity={"nodeAffinity": {"x": 1}},
        ),
    ]
    found, others = refused_entries(merged(deployment(), config), [(field, "is wrong")])
    if reason is None:
        assert (found, others) == ([], [f"{field}: is wrong"])
    else:
        (fault,) = found
        assert (fault.reason, fault.entry, others) == (reason, entry, [])


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("1e999999999", id="a huge exponent"),
        pytest.param("1e-999999999", id="a tiny one"),
        pytest.param("1e101", id="just too large"),
        pytest.param("9" * 5000, id="a long text"),
        pytest.param(10**5000, id="a long number"),
    ],
)
def test_an_absurd_quantity_is_a_fault_at_once(value: Any) -> None:
    for part, reason in (("requests", "ResourceRequest"), ("limits", "ResourceLimit")):
        entry = ConfigEntry(resources={part: {"cpu": value}})
        (fault,) = config_faults(merged(deployment(), [entry]), [entry])
        assert fault.reason == f"{reason}Failure"
        assert len(str(fault)) < 500


def test_what_is_for_containers_concerns_no_deployment_without_them() -> None:
    """The entry names a container of another Deployment."""
    both = {"name": "A", "value": "1", "valueFrom": KEY_REF}
    entry = ConfigEntry(
        containers=("other",),
        env=(both,),
        env_from=({"configMapRef": {"name": "gone"}},),
        resources={"limits": {"cpu": "-1"}},
        volumes=({"name": "v", "secret": {"secretName": "gone"}},),
    )
    found = faults(entry, lookup=lambda reference: f"no {reference.name}")
    assert found == ["config[0].volumes[0]: no gone (Deployment etcd-operator)"]
