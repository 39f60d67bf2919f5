"""`Annotated` markers for what a CRD says about a field beyond its type.

The API server enforces them and our decoder does not (see `meta`), so they are schema keywords and
not msgspec's constraints. `structural` puts them into a CRD.
"""

from enum import StrEnum
from inspect import cleandoc
from typing import Any

import msgspec
from msgspec import Meta


class ValidationRule(msgspec.Struct, frozen=True):
    """A CEL rule, and the message if an object violates it."""

    rule: str
    message: str
    field_path: str | None = None
    """The field that the error names, if it is below the field with the rule."""


def keywords(**words: object) -> Meta:
    """A marker with these schema keywords; those with None are left out."""
    return Meta(
        extra_json_schema={word: value for word, value in words.items() if value is not None}
    )


def one_of(values: type[StrEnum]) -> Meta:
    """The value is one of these."""
    return keywords(enum=[str(value) for value in values])


def text(
    *,
    min_length: int | None = None,
    max_length: int | None = None,
    pattern: str | None = None,
    format: str | None = None,  # noqa: A002 - the schema's own word
) -> Meta:
    """The bounds of a string."""
    return keywords(minLength=min_length, maxLength=max_length, pattern=pattern, format=format)


def number(*, minimum: int | None = None, maximum: int | None = None) -> Meta:
    """The bounds of an integer."""
    return keywords(minimum=minimum, maximum=maximum)


def items(*, min_items: int | None = None, max_items: int | None = None) -> Meta:
    """The bounds of the length of a list."""
    return keywords(minItems=min_items, maxItems=max_items)


def default(value: Any) -> Meta:
    """The API server's default for the field."""
    return keywords(default=value)


def list_map(*keys: str) -> Meta:
    """A list whose entries these fields identify; each entry is merged and owned by itself."""
    return Meta(
        extra_json_schema={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": list(keys),
        }
    )


def rules(*rules: ValidationRule) -> Meta:
    """CEL rules about the field; `self` is its value."""
    return Meta(
        extra_json_schema={"x-kubernetes-validations": [validation(rule) for rule in rules]}
    )


def validation(rule: ValidationRule) -> dict[str, str]:
    """The rule as an entry of `x-kubernetes-validations`."""
    written = {"rule": cleandoc(rule.rule), "message": rule.message}
    if rule.field_path is not None:
        written["fieldPath"] = rule.field_path
    return written


KUBERNETES_TYPE = "x-quarterdeck-kubernetes-type"
"""The keyword of `kubernetes_type`, which `structural` replaces by the schema."""


def kubernetes_type(name: str) -> Meta:
    """An object of this type of Kubernetes, such as `EnvVar`; see `kubernetes_types`."""
    return Meta(extra_json_schema={KUBERNETES_TYPE: name})


LIST_SET = Meta(extra_json_schema={"x-kubernetes-list-type": "set"})
"""A list of scalars without duplicates, each owned by itself."""

NULLABLE = Meta(extra_json_schema={"nullable": True})
"""An explicit null is accepted and kept."""

OPAQUE = Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})
"""An object with any content."""
