"""Finds the values of an object that have another type than its schema says. Pure.

The API server refuses such an object. Only types and required fields are compared: this is for
objects that no server has checked, and that are read as if one had.
"""

from collections.abc import Iterator, Mapping
from typing import Any

INT_OR_STRING = "x-kubernetes-int-or-string"

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_WORDS = {"object": "an object", "array": "a list", "string": "text", "boolean": "true or false"}
_NUMBERS = {"integer": "a whole number", "number": "a number"}


def type_faults(value: Any, schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """A sentence for each value of a wrong type, and for each required field that is missing.

    A null in a map counts as absent, as for the API server; in a list it is a fault.
    """
    wanted = _wanted(schema)
    if wanted and not _is_any(value, wanted):
        yield f"{path or 'the object'}: {_named(value)}, not {' or '.join(map(_word, wanted))}"
    elif isinstance(value, dict):
        present = {name: inner for name, inner in value.items() if inner is not None}
        yield from _map_faults(present, schema, path)
    elif isinstance(value, list | tuple):
        for position, inner in enumerate(value):
            yield from type_faults(inner, schema.get("items") or {}, f"{path}[{position}]")


def _map_faults(present: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    known, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name in schema.get("required") or ():
        if name not in present:
            yield f"{_below(path, name)}: it is missing"
    for name, inner in present.items():
        below = known.get(name, others)
        if isinstance(below, Mapping):
            yield from type_faults(inner, below, _below(path, name))


def _wanted(schema: Mapping[str, Any]) -> tuple[str, ...]:
    if schema.get(INT_OR_STRING):
        return ("integer", "string")
    return (schema["type"],) if "type" in schema else ()


def _is_any(value: Any, wanted: tuple[str, ...]) -> bool:
    # To Python a boolean is a number.
    return any(
        isinstance(value, _TYPES[one]) and isinstance(value, bool) <= (one == "boolean")
        for one in wanted
    )


def _named(value: Any) -> str:
    if value is None:
        return "null"
    found = next((one for one in _TYPES if _is_any(value, (one,))), "")
    return _word(found)


def _word(type_: str) -> str:
    return _WORDS.get(type_) or _NUMBERS[type_]


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
