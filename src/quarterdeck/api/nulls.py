"""Null fields of objects, which the API server takes for absent ones. Pure."""

from typing import Any


def without_nulls(value: Any) -> Any:
    """The value without null fields, which an apply would take for deletions."""
    match value:
        case dict():
            return {key: without_nulls(one) for key, one in value.items() if one is not None}
        case list() | tuple():
            return [without_nulls(one) for one in value]
        case _:
            return value
