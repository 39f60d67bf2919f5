"""The smallest JSON merge patch from one value to another, also as a JSON patch. Pure."""

from typing import Any

from quarterdeck.api.meta import Object


def merge_patch(old: Object, new: Object) -> Object:
    """The merge patch that turns `old` into `new`; empty if they are equal.

    A removed key is null in it, and a list is replaced as a whole. None in `new` is the same as no
    key, because a merge patch cannot express null.
    """
    patch: Object = {key: None for key in old if new.get(key) is None and old[key] is not None}
    for key, value in new.items():
        if value is None or (key in old and old[key] == value):
            continue
        before = old.get(key)
        if not isinstance(before, dict) or not isinstance(value, dict):
            patch[key] = value
        elif inner := merge_patch(before, value):
            patch[key] = inner  # It is empty if they differ in nulls only.
    return patch


def has_null_in_list(value: Any) -> bool:
    """Whether a list has a null in it: the API server drops it from a merge patch (tried)."""
    if isinstance(value, dict):
        return any(has_null_in_list(inner) for inner in value.values())
    return isinstance(value, list | tuple) and any(_has_null(inner) for inner in value)


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_null(inner) for inner in value.values())
    if isinstance(value, list | tuple):
        return any(_has_null(inner) for inner in value)
    return value is None


def json_patch(old: Object, patch: Object, path: str) -> list[Object]:
    """The merge patch of `old`, which is at `path`, as operations of a JSON patch."""
    operations: list[Object] = []
    for key, value in patch.items():
        at = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        before = old.get(key)
        if value is None:
            operations.append({"op": "remove", "path": at})
        elif isinstance(before, dict) and isinstance(value, dict):
            operations += json_patch(before, value, at)
        else:
            operations.append({"op": "add", "path": at, "value": value})
    return operations
