"""What a CRD says about a field beyond its Python type, written as `Annotated` markers.

The API server enforces these; our decoder does not (see `meta`), which is why they are schema
keywords here and not msgspec's own constraints. Turning them into a CRD is `structural`'s work.
"""

from enum import StrEnum
from inspect import cleandoc
from typing import Any

import msgspec
from msgspec import Meta


class Rule(msgspec.Struct, frozen=True):
    """A CEL rule, and what a person reads when it is broken."""

    rule: str
    message: str
    field_path: str | None = None
    """The field to name in the error, where it is a deeper one than that with the rule."""


def keywords(**words: object) -> Meta:
    """A marker with schema keywords as they are; None leaves one out."""
    return Meta(
        extra_json_schema={word: value for word, value in words.items() if value is not None}
    )


def one_of(values: type[StrEnum]) -> Meta:
    """The field's text is one of these."""
    return keywords(enum=[str(value) for value in values])


def text(
    *,
    min_length: int | None = None,
    max_length: int | None = None,
    pattern: str | None = None,
    format: str | None = None,  # noqa: A002 - the schema's own word
) -> Meta:
    """Bounds of a string."""
    return keywords(minLength=min_length, maxLength=max_length, pattern=pattern, format=format)


def number(*, minimum: int | None = None, maximum: int | None = None) -> Meta:
    """Bounds of an integer."""
    return keywords(minimum=minimum, maximum=maximum)


def items(*, min_items: int | None = None, max_items: int | None = None) -> Meta:
    """Bounds of a list's length."""
    return keywords(minItems=min_items, maxItems=max_items)


def default(value: Any) -> Meta:
    """What the API server fills in where the field is absent."""
    return keywords(default=value)


def list_map(*keys: str) -> Meta:
    """A list whose entries are told apart by these fields, each merged and owned by itself."""
    return Meta(
        extra_json_schema={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": list(keys),
        }
    )


def rules(*rules: Rule) -> Meta:
    """CEL rules that the field keeps; `self` is the field's value."""
    return Meta(
        extra_json_schema={"x-kubernetes-validations": [validation(rule) for rule in rules]}
    )


def validation(rule: Rule) -> dict[str, str]:
    """The rule as it stands in a schema."""
    written = {"rule": cleandoc(rule.rule), "message": rule.message}
    if rule.field_path is not None:
        written["fieldPath"] = rule.field_path
    return written


LIST_SET = Meta(extra_json_schema={"x-kubernetes-list-type": "set"})
"""A list of scalars without duplicates, each owned by itself."""

NULLABLE = Meta(extra_json_schema={"nullable": True})
"""An explicit null is accepted and kept."""

OPAQUE = Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})
"""An object that is kept as it comes; we do not say what is in it."""
