"""Walks FieldsV1, the trees of owned fields, beside the objects that they describe. Pure.

Keys are `f:name`, `k:{"key":"value"}` and `v:"value"`; a leaf is empty. The keys show how each list
merges, so no schema is needed.
"""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from quarterdeck.kube.defaults import is_server_default

Path = tuple[str, ...]
"""Field names; an item of a list is `[key=value]`."""
Tree = dict[str, Any]


# How lists in a pod's spec merge; any other list is owned whole.
_LIST_KEYS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}


def whole_tree(value: Any, name: str = "") -> Tree:
    """The tree of a manager that owns a whole pod spec; the server corrects it by its schema."""
    if isinstance(value, dict):
        return {f"f:{field}": whole_tree(below, field) for field, below in value.items()}
    keys = _LIST_KEYS.get(name)
    if keys is None or not isinstance(value, list):
        return {}
    tree: Tree = {}
    for item in value:
        named = json.dumps({key: item.get(key) for key in keys}, separators=(",", ":"))
        tree[f"k:{named}"] = {".": {}, **whole_tree(item)}
    return tree


def without(tree: Tree, keys: Path) -> Tree:
    """The tree without the subtree at these keys; empty if nothing else is in it."""
    key, *rest = keys
    if key not in tree:
        return tree
    left = without(tree[key], tuple(rest)) if rest else {}
    others = {name: sub for name, sub in tree.items() if name != key}
    return {**others, key: left} if any(children(left)) else others


def nested(tree: Tree, keys: Path) -> Tree:
    """A new tree that has this one at these keys."""
    for key in reversed(keys):
        tree = {key: tree}
    return tree


def children(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """The keys and subtrees below a node, without `.`, which is the node itself."""
    return ((key, subtree) for key, subtree in tree.items() if key != ".")


def keys_of(path: Path) -> Path:
    """The tree's keys for a path of field names."""
    return tuple(f"f:{name}" for name in path)


def inside(value: Any, path: Path) -> Any:
    """The value at a path of field names; empty if there is none."""
    for name in path:
        value = (value or {}).get(name)
    return value or {}


def step(key: str, value: Any, *, defaulted: bool = False) -> Any:
    """The value under one key of a tree; None if there is none."""
    form, _, name = key.partition(":")
    if form == "f":
        return value.get(name) if isinstance(value, dict) else None
    return _item(value, msgspec.json.decode(name), defaulted=defaulted)


def _item(items: Any, keys: Any, *, defaulted: bool = False) -> Any:
    """The item of a list with these keys; with `defaulted` it may lack a key with a default."""
    if not isinstance(items, list):
        return None
    if not isinstance(keys, dict):
        return keys if keys in items else None

    def fits(item: Any, name: str, value: Any) -> bool:
        if name not in item:
            return defaulted and is_server_default(("ports", "*", name), value)
        return bool(item[name] == value)

    return next(
        (
            item
            for item in items
            if isinstance(item, dict) and all(fits(item, *pair) for pair in keys.items())
        ),
        None,
    )


def name_in_path(key: str) -> str:
    """The name of a tree's key in a path."""
    form, _, name = key.partition(":")
    if form == "f":
        return name
    return _name_of(msgspec.json.decode(name))


def _name_of(keys: Any) -> str:
    if isinstance(keys, dict):
        return "[" + ",".join(f"{name}={value}" for name, value in keys.items()) + "]"
    return f"[{keys}]"


def shown(path: Path) -> str:
    """The path for people."""
    return ".".join(path).replace(".[", "[")
