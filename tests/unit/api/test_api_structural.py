"""How Python types are written as structural schemas."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import pytest

from quarterdeck.api.meta import Part
from quarterdeck.api.schema import (
    LIST_SET,
    NULLABLE,
    OPAQUE,
    ValidationRule,
    default,
    items,
    list_map,
    number,
    one_of,
    rules,
    text,
)
from quarterdeck.api.structural import UnsupportedTypeError, schema_of


class Colour(StrEnum):
    RED = "red"
    NONE = ""


class Inner(Part):
    """What is
    inside.

    And more:
    - one
    - two
    """

    must_be: str
    """This
    one."""

    can_be: int | None = None


class Base(Part):
    inherited: str | None = None
    """From the base."""


class Outer(Base):
    inner: Inner | None = None
    """Says more than the type."""

    bare: Inner | None = None
    renamed: str = msgspec.field(default="", name="otherName")


INNER: dict[str, Any] = {
    "type": "object",
    "description": "What is inside.\n\nAnd more:\n- one\n- two",
    "properties": {
        "mustBe": {"type": "string", "description": "This one."},
        "canBe": {"type": "integer", "format": "int64"},
    },
    "required": ["mustBe"],
}


@pytest.mark.parametrize(
    ("type_", "schema"),
    [
        pytest.param(str, {"type": "string"}, id="text"),
        pytest.param(bool, {"type": "boolean"}, id="a flag"),
        pytest.param(int, {"type": "integer", "format": "int64"}, id="a number has 64 bits"),
        pytest.param(float, {"type": "number"}, id="a fraction"),
        pytest.param(datetime, {"type": "string", "format": "date-time"}, id="a time is text"),
        pytest.param(str | None, {"type": "string"}, id="None is absence, and not null"),
        pytest.param(
            Annotated[str | None, NULLABLE],
            {"type": "string", "nullable": True},
            id="null is accepted only where said",
        ),
        pytest.param(
            tuple[str, ...],
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
            id="a list is atomic",
        ),
        pytest.param(
            list[str],
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
            id="a Python list is a list too",
        ),
        pytest.param(
            Annotated[tuple[str, ...], LIST_SET, items(min_items=1, max_items=3)],
            {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
                "minItems": 1,
                "maxItems": 3,
            },
            id="a set with bounds",
        ),
        pytest.param(
            Annotated[tuple[Inner, ...], list_map("mustBe")],
            {
                "type": "array",
                "items": INNER,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["mustBe"],
            },
            id="a list with keys",
        ),
        pytest.param(
            dict[str, int],
            {"type": "object", "additionalProperties": {"type": "integer", "format": "int64"}},
            id="a map says what its values are",
        ),
        pytest.param(
            Annotated[dict[str, Any], OPAQUE],
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            id="an opaque object keeps everything",
        ),
        pytest.param(
            Annotated[str, text(min_length=1, max_length=2, pattern="^a", format="uri")],
            {"type": "string", "minLength": 1, "maxLength": 2, "pattern": "^a", "format": "uri"},
            id="bounds of text",
        ),
        pytest.param(
            Annotated[int, number(minimum=0, maximum=9)],
            {"type": "integer", "format": "int64", "minimum": 0, "maximum": 9},
            id="bounds of a number",
        ),
        pytest.param(
            Annotated[str | None, one_of(Colour), default("red")],
            {"type": "string", "enum": ["red", ""], "default": "red"},
            id="an enum with the server's default",
        ),
        pytest.param(
            Annotated[
                int,
                rules(ValidationRule("self > 0", "be positive")),
                rules(ValidationRule("self < 9", "big")),
            ],
            {
                "type": "integer",
                "format": "int64",
                "x-kubernetes-validations": [
                    {"rule": "self > 0", "message": "be positive"},
                    {"rule": "self < 9", "message": "big"},
                ],
            },
            id="rules add up",
        ),
        pytest.param(
            Annotated[Inner, rules(ValidationRule("\n  a\n  || b\n", "m", ".mustBe"))],
            INNER
            | {
                "x-kubernetes-validations": [
                    {"rule": "a\n|| b", "message": "m", "fieldPath": ".mustBe"}
                ]
            },
            id="a rule over several lines is written without its indentation",
        ),
        pytest.param(
            Outer,
            {
                "type": "object",
                "properties": {
                    "inherited": {"type": "string", "description": "From the base."},
                    "inner": INNER | {"description": "Says more than the type."},
                    "bare": INNER,
                    "otherName": {"type": "string"},
                },
            },
            id="a field's own description goes before its type's",
        ),
    ],
)
def test_schema(type_: Any, schema: dict[str, Any]) -> None:
    assert schema_of(type_, "X") == schema


class Ambiguous(Part):
    choice: int | str


class Untyped(Part):
    anything: Any


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        pytest.param(Ambiguous, "X.choice: .*a field has one type", id="two types at once"),
        pytest.param(tuple[Untyped, ...], r"X\[\].anything: .* use text", id="no type at all"),
    ],
)
def test_a_type_without_schema_is_refused_with_its_place(type_: Any, message: str) -> None:
    with pytest.raises(UnsupportedTypeError, match=message):
        schema_of(type_, "X")
