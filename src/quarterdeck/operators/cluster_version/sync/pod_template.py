"""Finds fields of other managers in a pod template's spec, and moves their ownership to us. Pure.

The operator owns the whole spec of a pod template in a release. It removes containers, variables,
volumes, security contexts and host settings that somebody else adds. An apply does not remove the
fields of other managers. So their ownership moves to us first, and the next apply removes the
fields that the release does not have.

A field that nobody owns has the server's default, and stays. One such default follows from another
field and would outlive it: see `_strays`. We then take ownership of the whole spec, and the server
sets its defaults again.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.controller.ownership import as_applied
from quarterdeck.kube.compare import merged_fields
from quarterdeck.kube.defaults import is_server_default
from quarterdeck.operators.cluster_version.sync.field_trees import (
    Path,
    Tree,
    children,
    inside,
    keys_of,
    name_in_path,
    nested,
    shown,
    step,
    whole_tree,
    without,
)
from quarterdeck.payload.model import ObjectIdentity

_TEMPLATE: Path = ("spec", "template", "spec")
_POD_SPECS: dict[tuple[str, str], Path] = {
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("batch", "Job"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
}
NOBODY = ""
"""The manager of a field that nobody owns."""


def has_pod_template(group: str, kind: str) -> bool:
    """Whether objects of this kind create pods from a template."""
    return (group, kind) in _POD_SPECS


def foreign_fields(
    identity: ObjectIdentity, live: Object, desired: Object, manager: str
) -> dict[str, list[str]]:
    """The paths in the pod template's spec that the release does not have, by manager."""
    at = _POD_SPECS.get((identity.group, identity.kind))
    if at is None:
        return {}
    want, have = inside(desired, at), inside(live, at)
    found = _by_manager(
        (who, _foreign(tree, want, have, at)) for who, tree in _of_others(live, at, manager)
    )
    if not _is_owned(live, at):
        # Somebody has removed the managedFields.
        return {NOBODY: [shown(at)]}
    known = {path for paths in found.values() for path in paths}
    strays = [path for path in map(shown, _strays(want, have, at)) if path not in known]
    return found | ({NOBODY: strays} if strays else {})


def replaced_fields(
    identity: ObjectIdentity, live: Object, desired: Object, manager: str
) -> dict[str, list[str]]:
    """The paths in the pod template's spec whose value differs from the release, by manager."""
    at = _POD_SPECS.get((identity.group, identity.kind))
    if at is None:
        return {}
    want, have = inside(desired, at), inside(live, at)
    ours: Tree = {}
    for entry in _entries(live):
        if entry.get("manager") == manager:
            ours = merged_fields(ours, inside(entry.get("fieldsV1") or {}, keys_of(at)))
    return _by_manager(
        (who, _replaced(tree, ours, want, have, at)) for who, tree in _of_others(live, at, manager)
    )


def as_ours(identity: ObjectIdentity, live: Object, manager: str) -> list[Object]:
    """The object's managedFields with us as the only owner of the pod template's spec.

    Fields that we created become applied fields too, so that one apply removes all others.
    """
    at = _POD_SPECS[identity.group, identity.kind]
    taken: Tree = {}
    kept: list[Object] = []
    for entry in _entries(live):
        fields = entry.get("fieldsV1") or {}
        if entry.get("manager") == manager:
            kept.append(entry)
            continue
        taken = merged_fields(taken, inside(fields, keys_of(at)))
        if rest := without(fields, keys_of(at)):
            kept.append({**entry, "fieldsV1": rest})
    if not any(_is_main(entry, manager) for entry in kept):
        kept.append(
            {
                "manager": manager,
                "operation": "Apply",
                "apiVersion": live["apiVersion"],
                "fieldsType": "FieldsV1",
                "fieldsV1": {},
            }
        )
    *others, ours = as_applied(kept, manager)
    before = ours["fieldsV1"]
    spec = merged_fields(inside(before, keys_of(at)), taken)
    whole = merged_fields(spec, whole_tree(inside(live, at)))
    return [*others, {**ours, "fieldsV1": merged_fields(before, nested(whole, keys_of(at)))}]


def describe_owners(found: dict[str, list[str]]) -> str:
    """The paths and their managers, for people."""
    parts = [
        f"{', '.join(paths)} (set by {manager or 'nobody who is recorded'})"
        for manager, paths in sorted(found.items())
    ]
    return "; ".join(parts)


# --- fields that the release does not have


def _of_others(live: Object, at: Path, manager: str) -> Iterator[tuple[str, Tree]]:
    """The other managers that own fields below a path, and those fields."""
    for entry in _entries(live):
        if entry.get("manager") != manager:
            yield str(entry.get("manager", "")), inside(entry.get("fieldsV1") or {}, keys_of(at))


def _is_owned(live: Object, at: Path) -> bool:
    return any(inside(entry.get("fieldsV1") or {}, keys_of(at)) for entry in _entries(live))


def _by_manager(found: Iterable[tuple[str, Iterable[Path]]]) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for manager, those in found:
        for path in those:
            paths.setdefault(manager, []).append(shown(path))
    return paths


def _foreign(tree: Tree, want: Any, have: Any, path: Path) -> Iterator[Path]:
    """The topmost owned paths that are not desired and have no default value."""
    for key, subtree in children(tree):
        at = (*path, name_in_path(key))
        current = step(key, have)
        if (wanted := step(key, want, defaulted=True)) is not None:
            yield from _foreign(subtree, wanted, current, at)
        elif current is not None and not _is_default(subtree, current, at, have):
            yield at


def _replaced(tree: Tree, ours: Tree, want: Any, have: Any, path: Path) -> Iterator[Path]:
    """The paths that only other managers own and whose value is not the desired one."""
    for key, subtree in children(tree):
        wanted, current = step(key, want, defaulted=True), step(key, have)
        if wanted is None:
            continue
        if any(children(subtree)):
            yield from _replaced(
                subtree, ours.get(key, {}), wanted, current, (*path, name_in_path(key))
            )
        elif key not in ours and wanted != current:
            yield (*path, name_in_path(key))


def _is_default(tree: Tree, value: Any, path: Path, parent: Any) -> bool:
    """Whether all owned fields at the path have the server's default."""
    plain = tuple("*" if name.startswith("[") else name for name in path)
    if is_server_default(plain, value, parent if isinstance(parent, dict) else None):
        return True
    below = list(children(tree))
    return bool(below) and all(
        _is_default(subtree, step(key, value), (*path, name_in_path(key)), value)
        for key, subtree in below
    )


def _strays(want: Any, have: Any, path: Path) -> Iterator[Path]:
    """Unowned values that the server copied from a field that is not desired.

    The server copies serviceAccountName to the deprecated serviceAccount. That copy keeps its
    effect when serviceAccountName is removed.
    """
    accounts = ("serviceAccountName", "serviceAccount")
    if not any(want.get(name) for name in accounts):
        yield from ((*path, name) for name in accounts if have.get(name))


def _entries(live: Object) -> list[Object]:
    entries: list[Object] = live["metadata"].get("managedFields") or []
    return entries


def _is_main(entry: Object, manager: str) -> bool:
    return entry.get("manager") == manager and not entry.get("subresource")
