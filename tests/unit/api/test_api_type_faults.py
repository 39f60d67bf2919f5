"""Values of another type than their schema says."""

from typing import Any

import pytest

from quarterdeck.api.definition import root_schema
from quarterdeck.api.operators_v1alpha1 import SUBSCRIPTIONS
from quarterdeck.api.type_faults import type_faults

SCHEMA = root_schema(SUBSCRIPTIONS)


def faults(*entries: Any, **spec: Any) -> list[str]:
    found = {"metadata": {"name": "s"}, "spec": {"name": "p", "config": list(entries), **spec}}
    return list(type_faults(found, SCHEMA))


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        pytest.param(
            {"env": [{"name": "A", "value": None}], "resources": {"limits": {"cpu": 1}}},
            [],
            id="nulls in maps, and a number for a quantity",
        ),
        pytest.param(
            {"env": {"A": "x"}}, ["spec.config[0].env: an object, not a list"], id="a map"
        ),
        pytest.param(
            {"env": [{"value": "x"}]}, ["spec.config[0].env[0].name: it is missing"], id="missing"
        ),
        pytest.param(
            {"env": [{"name": None}]},
            ["spec.config[0].env[0].name: it is missing"],
            id="null for a required field",
        ),
        pytest.param({"env": [None]}, ["spec.config[0].env[0]: null, not an object"], id="null"),
        pytest.param(
            {"annotations": {"a": True}},
            ["spec.config[0].annotations.a: true or false, not text"],
            id="a boolean, which is no number either",
        ),
        pytest.param(
            {"tolerations": [{"tolerationSeconds": True}], "resources": {"limits": {"cpu": 0.5}}},
            [
                "spec.config[0].tolerations[0].tolerationSeconds: true or false, "
                "not a whole number",
                "spec.config[0].resources.limits.cpu: a number, not a whole number or text",
            ],
            id="numbers",
        ),
        pytest.param("x", ["spec.config[0]: text, not an object"], id="no entry"),
    ],
)
def test_each_is_named_with_what_it_should_be(entry: Any, told: list[str]) -> None:
    assert sorted(faults(entry)) == sorted(told)


def test_an_object_that_is_none() -> None:
    assert list(type_faults([], SCHEMA)) == ["the object: a list, not an object"]
    assert list(type_faults({}, SCHEMA)) == ["spec: it is missing"]
