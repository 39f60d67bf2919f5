"""How typed objects are decoded and encoded: the rules at the top of `quarterdeck.api.meta`."""

import inspect
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kubernetes_schemas import is_kubernetes_type

from quarterdeck.api import config_v1
from quarterdeck.api.config_v1 import (
    CLUSTER_OPERATORS,
    ClusterOperator,
    ClusterOperatorSpec,
    ClusterOperatorStatus,
    ClusterStatusCondition,
    FeatureGate,
    FeatureGateSpec,
    Infrastructure,
    InfrastructureSpec,
    InfrastructureStatus,
    ObjectReference,
    PlatformStatus,
    UpdateHistory,
)
from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.definition import root_schema
from quarterdeck.api.kinds import KINDS
from quarterdeck.api.meta import ObjectMeta
from quarterdeck.api.operator_v1alpha1 import (
    CLUSTER_VERSION_OPERATORS,
    ClusterVersionOperator,
    ClusterVersionOperatorSpec,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def sent(value: msgspec.Struct) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        pytest.param(ClusterVersionOperatorSpec(), {}, id="what is not set is not sent"),
        pytest.param(
            ClusterVersionOperatorSpec(operator_log_level="Normal"),
            {"operatorLogLevel": "Normal"},
            id="a value that is the server's default is sent, so that apply owns it",
        ),
        pytest.param(
            ClusterVersionOperatorSpec(operator_log_level=""),
            {"operatorLogLevel": ""},
            id="an explicit empty text is sent",
        ),
        pytest.param(
            ObjectReference(group="", resource="nodes", name=""),
            {"group": "", "resource": "nodes", "name": ""},
            id="what is required is sent even when empty",
        ),
        pytest.param(
            ClusterStatusCondition(type="Available", status="True", last_transition_time=NOW),
            {
                "type": "Available",
                "status": "True",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
                "reason": "",
                "message": "",
            },
            id="a condition is always sent whole",
        ),
        pytest.param(
            UpdateHistory(
                state="Partial", started_time=NOW, completion_time=None, image="i", verified=False
            ),
            {
                "state": "Partial",
                "startedTime": "2026-01-02T03:04:05Z",
                "completionTime": None,
                "image": "i",
                "verified": False,
            },
            id="a required field that may be null is sent as null",
        ),
        pytest.param(ClusterOperatorStatus(versions=()), {}, id="an empty list is not sent"),
        pytest.param(
            ClusterOperator(metadata=ObjectMeta(name="dns"), spec=ClusterOperatorSpec()),
            {
                "apiVersion": "config.openshift.io/v1",
                "kind": "ClusterOperator",
                "metadata": {"name": "dns"},
                "spec": {},
            },
            id="an object knows its kind, and an unset status is not sent",
        ),
    ],
)
def test_encoding(value: msgspec.Struct, wire: Any) -> None:
    assert sent(value) == wire


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.kind))
def test_an_object_is_of_the_kind_that_its_resource_names(kind: CustomResource[Any]) -> None:
    """Declared in two places, once on the type and once on the resource."""
    fields = {field.name: field for field in msgspec.structs.fields(kind.type)}
    assert fields["api_version"].default_factory() == kind.api_version
    assert fields["kind"].default_factory() == kind.kind


def test_unknown_fields_are_ignored() -> None:
    wire = b'{"spec": {"new": 1}, "status": {"conditions": [], "newer": {"x": []}}, "newest": 2}'
    decoded = msgspec.json.decode(wire, type=ClusterOperator)
    assert decoded == ClusterOperator(spec=ClusterOperatorSpec())


def test_a_value_outside_the_enum_is_decoded_as_it_is() -> None:
    """The operator judges it; the cache must not lose the object."""
    wire = b'{"metadata": {"name": "cluster"}, "spec": {"operatorLogLevel": "Shout"}}'
    decoded = msgspec.json.decode(wire, type=ClusterVersionOperator)
    assert decoded.spec.operator_log_level == "Shout"


def test_objects_are_frozen() -> None:
    """What a cache hands out cannot be changed by accident."""
    spec = ClusterVersionOperatorSpec(operator_log_level="Debug")
    with pytest.raises(AttributeError, match="immutable"):
        spec.operator_log_level = "Trace"  # type: ignore[misc]


def test_resources_are_hashable_and_have_paths() -> None:
    """Caches are kept by resource."""
    by_resource = {CLUSTER_OPERATORS: 1, CLUSTER_VERSION_OPERATORS: 2}
    assert by_resource[CLUSTER_OPERATORS] == 1
    path = CLUSTER_OPERATORS.path(name="dns", subresource="status")
    assert path == "/apis/config.openshift.io/v1/clusteroperators/dns/status"


@pytest.mark.parametrize(
    ("newer", "older", "platform"),
    [
        pytest.param("BareMetal", "AWS", "BareMetal", id="the newer field counts"),
        pytest.param(None, "AWS", "AWS", id="the older one where the newer is absent"),
        pytest.param("", "AWS", "AWS", id="the older one where the newer is empty"),
        pytest.param(None, None, "", id="not known where neither is there"),
    ],
)
def test_platform_type(newer: str | None, older: str | None, platform: str) -> None:
    status = InfrastructureStatus(platform=older, platform_status=PlatformStatus(type=newer))
    assert Infrastructure(spec=InfrastructureSpec(), status=status).platform_type == platform


def test_platform_type_of_an_infrastructure_without_status() -> None:
    assert Infrastructure(spec=InfrastructureSpec()).platform_type == ""


def test_an_absent_feature_set_is_the_default_one() -> None:
    assert FeatureGate(spec=FeatureGateSpec()).spec.effective_feature_set == ""


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Everything that a schema lets through, but for patterns and CEL rules."""
    made: st.SearchStrategy[Any]
    match schema:
        case _ if is_kubernetes_type(schema):
            made = st.dictionaries(st.sampled_from("ab"), st.integers(0, 9), max_size=1)
        case {"x-kubernetes-preserve-unknown-fields": True} if "properties" not in schema:
            made = st.dictionaries(st.sampled_from("ab"), st.integers(0, 9), min_size=1)
        case {"enum": enum}:
            made = st.sampled_from(enum)
        case {"type": "string", "format": "date-time"}:
            made = st.integers(0, 59).map(lambda second: f"2026-01-02T03:04:{second:02}Z")
        case {"type": "string"}:
            made = st.text(max_size=3)
        case {"type": "boolean"}:
            made = st.booleans()
        case {"type": "integer"}:
            made = st.integers(0, 2**63 - 1)
        case {"type": "number"}:
            made = st.floats(0, 1e6)
        case {"type": "array", "items": entry}:
            made = st.lists(values(entry), max_size=2)
        case {"additionalProperties": entry}:
            made = st.dictionaries(st.sampled_from("ab"), values(entry), max_size=2)
        case _:
            fields = {name: values(field) for name, field in schema.get("properties", {}).items()}
            required = {name: fields.pop(name) for name in schema.get("required", [])}
            made = st.fixed_dictionaries(required, optional=fields)
    return made | st.none() if schema.get("nullable") else made


def covers(wire: Any, again: Any) -> bool:
    """Whether everything in `wire` is in `again`, but for what means the same as absence."""
    match wire:
        case dict():
            return all(
                value in (None, [], {}) or (name in again and covers(value, again[name]))
                for name, value in wire.items()
            )
        case list():
            return len(wire) == len(again) and all(map(covers, wire, again))
        case _:
            return bool(wire == again)


@cache
def objects(kind: CustomResource[Any]) -> st.SearchStrategy[Any]:
    return values(root_schema(kind)).map(lambda wire: wire | {"metadata": {"name": "x"}})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.kind))
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_the_schema_allows_is_decoded_and_encoded_without_loss(
    kind: CustomResource[Any], data: st.DataObject
) -> None:
    """Type and schema cannot drift apart, and nothing that we know of is lost on the way."""
    wire = data.draw(objects(kind))
    decoded = msgspec.json.decode(msgspec.json.encode(wire), type=kind.type)
    again = sent(decoded)
    assert covers(wire, again)
    assert msgspec.convert(again, type=kind.type) == decoded


def test_config_v1_exports_every_type_of_its_modules() -> None:
    """`from quarterdeck.api.config_v1 import X` works for all that is public there."""
    public = {
        name
        for _, module in inspect.getmembers(config_v1, inspect.ismodule)
        if module.__name__.startswith(config_v1.__name__)
        for name, member in vars(module).items()
        if (isinstance(member, type) and member.__module__ == module.__name__)
        or isinstance(member, CustomResource)
    }
    internal = {"PlatformDetails"}
    assert sorted(config_v1.__all__) == sorted(public - internal)
