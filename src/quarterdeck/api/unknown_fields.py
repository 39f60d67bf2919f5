"""Finds the fields of an object that its schema does not have, which an API server drops. Pure."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

PRESERVE = "x-kubernetes-preserve-unknown-fields"


def unknown_fields(value: Any, schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """A sentence for each unknown field: its path, and the field that is written alike."""
    if isinstance(value, list):
        for position, one in enumerate(value):
            yield from unknown_fields(one, schema.get("items") or {}, f"{path}[{position}]")
    if not isinstance(value, dict) or schema.get(PRESERVE):
        return
    known, others = schema.get("properties"), schema.get("additionalProperties")
    for name, inner in value.items():
        place = f"{path}.{name}" if path else str(name)
        if known is not None and name in known:
            yield from unknown_fields(inner, known[name], place)
        elif isinstance(others, Mapping):
            yield from unknown_fields(inner, others, place)
        elif known is not None and not others:
            alike = get_close_matches(str(name), known, n=1)
            yield f"{place}: there is no such field" + (f"; use {alike[0]}" if alike else "")
