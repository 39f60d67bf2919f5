"""Label selectors as fields of objects have them, with what people write into such a field."""

from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.controller import InvalidSpec, selector_in
from quarterdeck.kube import LabelSelector
from quarterdeck.kube.selector import EVERYTHING

FIELD = "spec.routeSelector"


def test_an_absent_selector_is_left_to_the_caller_and_an_empty_one_selects_everything() -> None:
    assert selector_in(FIELD, None) is None
    assert selector_in(FIELD, {}) == EVERYTHING
    assert selector_in(FIELD, {"matchLabels": {}, "matchExpressions": []}) == EVERYTHING


def test_each_operator_is_read() -> None:
    said = [
        {"key": "a", "operator": "In", "values": ["x", "y"]},
        {"key": "b", "operator": "NotIn", "values": ["x"]},
        {"key": "c", "operator": "Exists"},
        {"key": "d", "operator": "DoesNotExist", "values": []},
    ]
    found = selector_in(FIELD, {"matchLabels": {"e": "1"}, "matchExpressions": said})
    assert found is not None
    assert str(found) == "e=1,!d,a in (x,y),b notin (x),c"
    assert isinstance(found, LabelSelector)


def expression(operator: Any, *values: Any) -> Object:
    return {"matchExpressions": [{"key": "a", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        pytest.param(expression("Gt", "1"), "'Gt'", id="an operator of node selectors"),
        pytest.param(expression("in", "1"), "'in'", id="an operator in small letters"),
        pytest.param(expression("In"), "needs values", id="In without values"),
        pytest.param(expression("Exists", "x"), "has no values", id="Exists with a value"),
        pytest.param(expression("In", 1), "str", id="a number as a value"),
        pytest.param({"matchExpressions": [{"operator": "Exists"}]}, "key", id="no key"),
        pytest.param({"matchLabels": {"a": "x,b"}}, "is no value of", id="a second requirement"),
        pytest.param({"matchLabels": {"a": None}}, "str", id="a null"),
        pytest.param({"matchlabels": {"a": "x"}}, "no such field", id="a name in small letters"),
        pytest.param({"app": "x"}, "no such field", id="labels without matchLabels"),
    ],
)
def test_what_is_no_selector_is_told_by_its_field(value: Object, told: str) -> None:
    with pytest.raises(InvalidSpec, match=told) as raised:
        selector_in(FIELD, value)
    assert raised.value.field.startswith(FIELD)
