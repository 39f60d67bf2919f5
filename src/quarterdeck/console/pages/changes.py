"""Changes of objects: the patch that makes one, and how it is shown. Pure."""

import difflib
import re
from typing import Any, TypeVar

import msgspec
import yaml

from quarterdeck.api.meta import Object

T = TypeVar("T")
_RESOURCE_VERSION = re.compile(r"[0-9]{1,19}")


class ShownLine(msgspec.Struct, frozen=True):
    """A line of a comparison; `kind` is `same`, `add` or `remove`."""

    kind: str
    text: str


def typed(obj: Object, kind: type[T]) -> T:
    """The object as its type has it; raises `msgspec.ValidationError` if it does not fit."""
    return msgspec.json.decode(msgspec.json.encode(obj), type=kind)


def merge_patch(before: Any, after: Any) -> Any:
    """The merge patch that makes `before` into `after`; what `after` lacks is removed."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    patch: Object = {name: None for name in before if name not in after}
    for name, value in after.items():
        if name not in before:
            patch[name] = value
        elif before[name] != value:
            patch[name] = merge_patch(before[name], value)
    return patch


def is_resource_version(text: str) -> bool:
    """Whether this can be a resource version, as a form sends it back."""
    return _RESOURCE_VERSION.fullmatch(text) is not None


def compared(before: Any, after: Any) -> list[ShownLine]:
    """Both as YAML, line by line."""
    old, new = (_yaml(one) for one in (before, after))
    kinds = {"- ": "remove", "+ ": "add", "  ": "same"}
    return [
        ShownLine(kinds[line[:2]], f"{line[:2]}{line[2:]}")
        for line in difflib.ndiff(old, new)
        if line[:2] in kinds
    ]


def _yaml(value: Any) -> list[str]:
    if value is None:
        return []
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=False)
    return text.rstrip().splitlines()
