"""Compares an object with the desired one, without a request to the server.

An object is settled if every desired field has the desired value, in the server's form, and if we
own the desired fields and no others: otherwise a field that we no longer want would stay.
managedFields has what we own, as trees whose keys also show how each list merges (by keys, as a
set, or as a whole), so no schema is needed: the comparison walks `desired` and the trees together.

We own fields by Apply, or by Update from the POST that created the object. The Update entry
includes the fields that the server defaulted; `defaults` tells which those are. A field that we
patched as the same manager counts as ours, too.

`desired` is an argument for `Client.apply`: without status, without meaningful nulls, and for a
Secret with `data`, not `stringData`.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.kube.defaults import is_server_default
from quarterdeck.kube.quantity import holds_quantity, parse_quantity

Path = tuple[str, ...]
Tree = dict[str, Any]
"""FieldsV1: `f:name`, `k:{"key":"value"}`, `v:"value"` to subtrees; a leaf is empty."""

# The server records no owner for these fields.
_TYPE = frozenset({"apiVersion", "kind"})
_IDENTITY = frozenset(
    {"name", "generateName", "namespace", "uid", "resourceVersion"}
    | {"generation", "creationTimestamp", "managedFields"}
)
# Others may fill these maps if they are empty; any other empty map, as a selector, is meant to be.
_SHARED_MAPS = frozenset(
    {"metadata", "labels", "annotations", "data", "binaryData", "limits", "requests"}
    | {"spec", "resources", "securityContext"}
)


def unsettled(live: Object, desired: Object, manager: str, subresource: str = "") -> Iterator[str]:
    """The paths of the fields that are not as desired or no longer desired; none if settled."""
    return chain(*_differences(live, desired, manager, subresource))


def differences(live: Object, desired: Object, manager: str) -> tuple[list[str], list[str]]:
    """The paths that an apply corrects, and those of our created fields that it would keep."""
    mended, left = _differences(live, desired, manager, "")
    return list(mended), list(left)


def _differences(
    live: Object, desired: Object, manager: str, subresource: str
) -> tuple[Iterator[str], Iterator[str]]:
    applied = owned_fields(live, manager, "Apply", subresource)
    created = owned_fields(live, manager, "Update", subresource)
    want = _content(desired)
    lacking = _lacking_map(want, live, merged_fields(applied, created), ())
    unwanted = (path for path, _, _ in _unwanted(applied, want, live, ()))
    return map(".".join, chain(lacking, unwanted)), _leftover(created, want, live)


def covers(live: Object, desired: Object) -> bool:
    """Whether the object has all desired fields, whoever owns them; it may have more.

    Lists are compared as a whole, because only managedFields shows how they merge.
    """
    return _contains(_content(desired), live, ())


def owned_fields(live: Object, manager: str, operation: str, subresource: str = "") -> Tree:
    """The fields that a manager owns by an operation."""
    owned: Tree = {}
    for entry in live["metadata"].get("managedFields") or ():
        if (
            entry.get("manager") == manager
            and entry.get("operation") == operation
            and entry.get("subresource", "") == subresource
        ):
            owned = merged_fields(owned, entry.get("fieldsV1") or {})
    return owned


def _content(desired: Object) -> Object:
    """The fields that can have an owner: all but type and identity."""
    content = {field: value for field, value in desired.items() if field not in _TYPE}
    meta = content.pop("metadata", {})
    if kept := {field: value for field, value in meta.items() if field not in _IDENTITY}:
        content["metadata"] = kept
    return content


def merged_fields(one: Tree, other: Tree) -> Tree:
    """The fields that are in either tree."""
    if not one or not other:
        return one or other
    both = dict(one)
    for key, subtree in other.items():
        both[key] = merged_fields(both[key], subtree) if key in both else subtree
    return both


# --- desired fields that differ or are not ours


def _lacking_map(want: Object, have: Object, owned: Tree, path: Path) -> Iterator[Path]:
    for field, value in want.items():
        if value is None:
            continue
        at = (*path, field)
        node = owned.get(f"f:{field}")
        current = have.get(field)
        if node is not None:
            yield from _lacking(value, current, node, at)
        elif value and isinstance(value, dict) and isinstance(current, dict | None):
            yield from _lacking_map(value, current or {}, {}, at)
        # An empty value may have no recorded owner.
        elif value or not _contains(value, current, at):
            yield at


def _lacking(want: Any, have: Any, node: Tree, path: Path) -> Iterator[Path]:
    """The paths at which `have` is not as desired, or not ours."""
    if not _is_leaf(node) and isinstance(want, dict) and isinstance(have, dict | None):
        yield from _lacking_map(want, have or {}, node, path)
    elif not _is_leaf(node) and isinstance(want, list) and isinstance(have, list | None):
        yield from _lacking_items(want, have or [], node, path)
    elif not _same(want, have, path):
        yield path


def _lacking_items(want: list[Any], have: list[Any], node: Tree, path: Path) -> Iterator[Path]:
    """A list that merges by keys or as a set: our items are in our order, among those of others."""
    last = -1
    inside = (*path, "*")
    for item in want:
        found = _owned_item(item, node)
        if found is None:
            yield inside
            continue
        keys, subtree = found
        place = next((n for n, other in enumerate(have) if _is_item(other, keys)), -1)
        if place <= last:
            yield inside
            continue
        last = place
        if isinstance(item, dict):
            # An item without an owned field below it, such as an owner reference, is owned as a
            # whole.
            yield from _lacking(item, have[place], subtree, inside)


def _is_leaf(node: Tree) -> bool:
    return not node or node.keys() == {"."}


def _owned_item(item: Any, node: Tree) -> tuple[Any, Tree] | None:
    """The keys and the subtree that record our ownership of an item; None if we do not own it."""
    if not isinstance(item, dict):
        subtree = node.get(f"v:{_compact(item)}")
        return None if subtree is None else (item, subtree)
    best = None
    for key, subtree in node.items():
        if not key.startswith("k:"):
            continue
        keys = _keys(key[2:])
        missing = [name for name in keys if name not in item]
        if any(item[name] != keys[name] for name in keys if name in item):
            continue
        if not missing:
            return keys, subtree
        # A key that we leave out, such as a port's protocol, has the server's default.
        if all(is_server_default(("ports", "*", name), keys[name]) for name in missing):
            best = keys, subtree
    return best


@lru_cache(maxsize=4096)
def _keys(text: str) -> Any:
    """The keys, or the value, of an item in managedFields; the same ones come again and again."""
    return msgspec.json.decode(text)


def _is_item(item: Any, keys: Any) -> bool:
    if not isinstance(keys, dict):
        return bool(item == keys)
    return isinstance(item, dict) and all(item.get(name) == keys[name] for name in keys)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


# --- owned fields that are no longer desired


def _leftover(created: Tree, want: Object, live: Object) -> Iterator[str]:
    """Fields that we created and no longer want, without the server's defaults."""
    for path, value, parent in _unwanted(created, want, live, ()):
        if not is_server_default(path, value, parent):
            yield ".".join(path)


def _unwanted(
    owned: Tree, want: Any, have: Any, path: Path
) -> Iterator[tuple[Path, Any, Object | None]]:
    """The leaves that are owned and not desired: path, value and parent."""
    for key, subtree in owned.items():
        if key == ".":
            continue
        field, wanted, current = _step(key, want, have)
        at = (*path, field)
        if wanted is None:
            yield from _leaves(subtree, current, at, have if isinstance(have, dict) else None)
        elif not _is_leaf(subtree):
            yield from _unwanted(subtree, wanted, current, at)


def _step(key: str, want: Any, have: Any) -> tuple[str, Any, Any]:
    """One step down: the name in the path, the desired value (None if none), the current value."""
    form, _, name = key.partition(":")
    if form == "f":
        wanted = want.get(name) if isinstance(want, dict) else None
        current = have.get(name) if isinstance(have, dict) else None
        return name, wanted, current
    keys = _keys(name)
    items = have if isinstance(have, list) else []
    current = next((item for item in items if _is_item(item, keys)), None)
    wants = want if isinstance(want, list) else []
    wanted = next((item for item in wants if _owned_item(item, {key: {}})), None)
    return "*", wanted, current


def _leaves(
    tree: Tree, have: Any, path: Path, parent: Object | None
) -> Iterator[tuple[Path, Any, Object | None]]:
    if _is_leaf(tree):
        yield path, have, parent
        return
    for key, subtree in tree.items():
        if key != ".":
            field, _, current = _step(key, None, have)
            inside = have if isinstance(have, dict) else None
            yield from _leaves(subtree, current, (*path, field), inside)


# --- values that are the same to the server


def _identical(want: Any, have: Any) -> bool:
    """Whether both are identical, which is the most frequent case and quick to check."""
    if want != have:
        return False
    # To Python true is 1; in JSON it is not.
    return isinstance(want, str) or _sorted_json(want) == _sorted_json(have)


def _sorted_json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _same(want: Any, have: Any, path: Path) -> bool:
    """Whether the server stores the desired value as `have`; it may add defaults inside."""
    if _identical(want, have):
        return True
    if isinstance(want, dict):
        return isinstance(have, dict | None) and _same_map(want, have or {}, path)
    if isinstance(want, list):
        have = have or []
        return (
            isinstance(have, list)
            and len(want) == len(have)
            and all(_same(w, h, (*path, "*")) for w, h in zip(want, have, strict=True))
        )
    return _same_scalar(want, have, path)


def _same_map(want: Object, have: Object, path: Path) -> bool:
    if not all(_same(value, have.get(field), (*path, field)) for field, value in want.items()):
        return False
    if not want and path[-1] in _SHARED_MAPS:
        return True
    return all(
        field in want or value is None or is_server_default((*path, field), value, have)
        for field, value in have.items()
    )


def _contains(want: Any, have: Any, path: Path) -> bool:
    if _identical(want, have):
        return True
    if isinstance(want, dict) and isinstance(have, dict | None):
        have = have or {}
        return all(
            value is None or _contains(value, have.get(field), (*path, field))
            for field, value in want.items()
        )
    return _same(want, have, path)


def _same_scalar(want: Any, have: Any, path: Path) -> bool:
    if have is None:
        # The server leaves out empty values: "", 0, false.
        return not want
    if type(want) is bool or type(have) is bool:
        return want is have
    if want == have:
        return True
    if not holds_quantity(path) or not isinstance(want, str | int | float):
        return False
    value = parse_quantity(want)
    return value is not None and value == parse_quantity(have)
