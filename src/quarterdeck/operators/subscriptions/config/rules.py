"""The rules of the merge, one per field: what a config entry makes of a part of a pod. Pure.

Each rule gets a pod spec or a container to change, which belongs to the merge alone, and records in
the ledger what it has set.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.operators.subscriptions.config.origins import Ledger, item_path, unkeyed


def merge_by_key(
    owner: Object, name: str, key: str, new: Sequence[Object], path: str, source: str, to: Ledger
) -> None:
    """Replace the entries that have the same key, whole and in place; append the others.

    Of several new entries with one key, the last counts, at its place.
    """
    if not new:
        return
    last = {item.get(key): position for position, item in enumerate(new)}
    wanted = {
        item.get(key): item for position, item in enumerate(new) if last[item.get(key)] == position
    }
    merged: list[Object] = []
    seen: set[Any] = set()
    for item in owner.get(name) or ():
        mine = item.get(key)
        if mine not in wanted:
            merged.append(item)
        elif mine not in seen:
            seen.add(mine)
            merged.append(wanted[mine])
            if item != wanted[mine]:
                to.record(item_path(f"{path}.{name}", mine), source, item)
    for mine, item in wanted.items():
        if mine not in seen:
            merged.append(item)
            to.record(item_path(f"{path}.{name}", mine), source, None)
    owner[name] = merged


def append_missing(
    owner: Object, name: str, new: Iterable[Object], path: str, source: str, to: Ledger
) -> None:
    """Append each entry, unless an equal one is there."""
    wanted = {unkeyed(item): item for item in new}
    if not wanted:
        return
    present = owner.get(name) or []
    there = {unkeyed(item) for item in present}
    added = {key: item for key, item in wanted.items() if key not in there}
    for key in added:
        to.record(item_path(f"{path}.{name}", key), source, None)
    if added:
        owner[name] = [*present, *added.values()]


def replace(
    owner: Object, name: str, new: Mapping[str, Any] | None, path: str, source: str, to: Ledger
) -> None:
    """Replace the whole field; None keeps it, and an empty value removes it."""
    if new is None:
        return
    had = owner.get(name)
    if new:
        owner[name] = dict(new)
    else:
        owner.pop(name, None)
    if (had or {}) != new:
        to.record(f"{path}.{name}", source, had)


def merge_affinity(
    pod: Object, new: Mapping[str, Any] | None, path: str, source: str, to: Ledger
) -> None:
    """Merge the parts of an affinity; `{}` removes all, and an empty part removes that part."""
    if new is None:
        return
    had: Object = pod.get("affinity") or {}
    parts = new or {part: {} for part in had}
    merged = {**had, **parts}
    for part, value in parts.items():
        if (had.get(part) or {}) != value:
            to.record(f"{path}.affinity.{part}", source, had.get(part))
    kept = {part: value for part, value in merged.items() if value}
    if kept:
        pod["affinity"] = kept
    else:
        pod.pop("affinity", None)


def merge_map(
    owner: Object, name: str, new: Mapping[str, str], path: str, source: str, to: Ledger
) -> None:
    """Set the entries of a map; others stay."""
    if not new:
        return
    had: Object = owner.get(name) or {}
    for key, value in new.items():
        if had.get(key) != value:
            to.record(item_path(f"{path}.{name}", key), source, had.get(key))
    owner[name] = {**had, **new}
