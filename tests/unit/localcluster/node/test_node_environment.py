"""A container's variables and arguments, from its spec and what it refers to."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.pod.environment import (
    UnresolvedError,
    VariableSources,
    command,
    environment,
    expand,
    field_value,
)
from quarterdeck.localcluster.node.pod.quantities import in_units_of

POD: Object = {
    "metadata": {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "labels": {"app": "x", "b": 'say "hi"'},
        "annotations": {"quarterdeck.dev/a": "1"},
    },
    "spec": {
        "nodeName": "this-machine",
        "serviceAccountName": "sa",
        "containers": [
            {
                "name": "main",
                "resources": {
                    "limits": {"memory": "1Gi"},
                    "requests": {"cpu": "250m"},
                },
            }
        ],
    },
}
SOURCES = VariableSources(
    pod=POD,
    config_maps={"cm": {"data": {"A": "1", "B": "2"}}},
    secrets={"s": {"data": {"PASSWORD": base64.b64encode(b"pw").decode()}}},
    pod_ip="127.9.0.5",
    capacity={"cpu": "64", "memory": "256Gi"},
)


def variables(*env: dict[str, Any], env_from: list[dict[str, Any]] | None = None) -> dict[str, str]:
    container = {"name": "main", "env": list(env), "envFrom": env_from or []}
    return environment(container, SOURCES, {"PATH": "/bin"})


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        pytest.param("$(A)", "1", id="a known variable is replaced"),
        pytest.param("x-$(A)-$(A)-y", "x-1-1-y", id="wherever it stands"),
        pytest.param("$(NOPE)", "$(NOPE)", id="an unknown one stays as it is"),
        pytest.param("$$(A)", "$(A)", id="a doubled dollar escapes it"),
        pytest.param("$$$(A)", "$1", id="an escaped dollar before a variable"),
        pytest.param("$A ${A} $", "$A ${A} $", id="other dollars are text"),
        pytest.param("$(A", "$(A", id="an open parenthesis is text"),
        pytest.param("$()", "$()", id="an empty name is text"),
    ],
)
def test_expansion(text: str, expanded: str) -> None:
    assert expand(text, {"A": "1"}) == expanded


@given(st.text(alphabet="$()AB x"))
def test_doubling_every_dollar_makes_any_text_literal(text: str) -> None:
    assert expand(text.replace("$", "$$"), {"A": "1", "B": "2"}) == text


@pytest.mark.parametrize(
    ("origin", "value"),
    [
        pytest.param({"fieldRef": {"fieldPath": "metadata.name"}}, "p", id="the pod's name"),
        pytest.param({"fieldRef": {"fieldPath": "status.podIP"}}, "127.9.0.5", id="its address"),
        pytest.param({"fieldRef": {"fieldPath": "spec.nodeName"}}, "this-machine", id="its node"),
        pytest.param({"fieldRef": {"fieldPath": "metadata.labels['app']"}}, "x", id="a label"),
        pytest.param(
            {"fieldRef": {"fieldPath": "metadata.labels['no']"}}, "", id="a missing label"
        ),
        pytest.param(
            {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}},
            "1024",
            id="a limit in units of its divisor",
        ),
        pytest.param({"resourceFieldRef": {"resource": "requests.cpu"}}, "1", id="rounded up"),
        pytest.param(
            {"resourceFieldRef": {"resource": "limits.cpu"}}, "64", id="no limit: the node's"
        ),
        pytest.param({"configMapKeyRef": {"name": "cm", "key": "A"}}, "1", id="a ConfigMap's key"),
        pytest.param({"secretKeyRef": {"name": "s", "key": "PASSWORD"}}, "pw", id="a Secret's key"),
    ],
)
def test_value_from(origin: dict[str, Any], value: str) -> None:
    assert variables({"name": "V", "valueFrom": origin})["V"] == value


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        pytest.param(
            {"configMapKeyRef": {"name": "no", "key": "A"}},
            'env V: configmap "no" not found: create the ConfigMap',
            id="a ConfigMap that is not there",
        ),
        pytest.param(
            {"secretKeyRef": {"name": "s", "key": "no"}},
            "env V: no: add this key to s",
            id="a key that is not there",
        ),
        pytest.param({"fieldRef": {"fieldPath": "spec.magic"}}, "spec.magic", id="a strange field"),
    ],
)
def test_missing_says_what_and_where(origin: dict[str, Any], message: str) -> None:
    with pytest.raises(UnresolvedError) as error:
        variables({"name": "V", "valueFrom": origin})
    assert message in str(error.value)


def test_optional_references_to_nothing_leave_the_variable_out() -> None:
    reference = {"name": "no", "key": "A", "optional": True}
    given = variables(
        {"name": "V", "valueFrom": {"configMapKeyRef": reference}},
        env_from=[{"secretRef": {"name": "no", "optional": True}}],
    )
    assert given == {"PATH": "/bin"}


def test_order_of_variables() -> None:
    """env wins over envFrom, and sees what came before it."""
    given = variables(
        {"name": "A", "value": "own"},
        {"name": "C", "value": "$(A)-$(P_B)-$(LATER)"},
        {"name": "LATER", "value": "x"},
        env_from=[
            {"configMapRef": {"name": "cm"}},
            {"prefix": "P_", "configMapRef": {"name": "cm"}},
        ],
    )
    assert given["A"] == "own"
    assert given["C"] == "own-2-$(LATER)"


@pytest.mark.parametrize(
    ("container", "words"),
    [
        pytest.param({}, ["entry"], id="nothing given: the image's entrypoint"),
        pytest.param({"args": ["$(A)", "$$(A)"]}, ["entry", "1", "$(A)"], id="args follow it"),
        pytest.param({"command": ["c", "$(A)"]}, ["c", "1"], id="a command replaces it"),
        pytest.param({"command": ["c"], "args": ["a"]}, ["c", "a"], id="both"),
    ],
)
def test_command(container: dict[str, Any], words: list[str]) -> None:
    assert command(container, ["entry"], {"A": "1"}) == words


def test_all_labels_as_lines() -> None:
    assert field_value("metadata.labels", SOURCES) == 'app="x"\nb="say \\"hi\\""'


@pytest.mark.parametrize(
    ("quantity", "divisor", "count"),
    [
        ("1Gi", "1Mi", 1024),
        ("250m", "1", 1),
        ("250m", "1m", 250),
        ("1e3", "1", 1000),
        ("1.5k", "1", 1500),
    ],
)
def test_quantities(quantity: str, divisor: str, count: int) -> None:
    assert in_units_of(quantity, divisor) == count
