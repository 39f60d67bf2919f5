"""Who else has set something in a pod template's spec, and how it becomes ours to remove. Pure.

Of what a release carries the operator owns the pod template's spec whole: containers, variables,
volumes, security contexts and host settings that somebody adds go. An apply does not remove fields
of others, so their ownership moves to us first, and the apply after that removes what the release
does not have.

A field that nobody owns is the server's default, and stays. One of them follows from another field,
which may be gone by now, and would keep its effect: see `_strays`. When ownership is taken, it is
of everything in the spec: the server fills its defaults in again.
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
from quarterdeck.payload.model import Identity

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
    """Whether objects of this kind make pods from a template."""
    return (group, kind) in _POD_SPECS


def foreign_fields(
    identity: Identity, live: Object, desired: Object, manager: str
) -> dict[str, list[str]]:
    """What is in the pod template's spec and not in the release: who set it, and its paths."""
    at = _POD_SPECS.get((identity.group, identity.kind))
    if at is None:
        return {}
    want, have = inside(desired, at), inside(live, at)
    found = _by_manager(
        (who, _foreign(tree, want, have, at)) for who, tree in _of_others(live, at, manager)
    )
    if not _is_owned(live, at):
        # Somebody has wiped out who owns what.
        return {NOBODY: [shown(at)]}
    known = {path for paths in found.values() for path in paths}
    strays = [path for path in map(shown, _strays(want, have, at)) if path not in known]
    return found | ({NOBODY: strays} if strays else {})


def replaced_fields(
    identity: Identity, live: Object, desired: Object, manager: str
) -> dict[str, list[str]]:
    """What of the release has another value in the pod template's spec: who set it, its paths."""
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


def as_ours(identity: Identity, live: Object, manager: str) -> list[Object]:
    """The object's managedFields with its pod template's spec as applied by us, and by nobody else.

    What we created counts as applied, too, so that one apply removes all that we do not want.
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


def told(found: dict[str, list[str]]) -> str:
    """Who had set what, for people."""
    parts = [
        f"{', '.join(paths)} (set by {manager or 'nobody who is recorded'})"
        for manager, paths in sorted(found.items())
    ]
    return "; ".join(parts)


# --- what is there that is not wanted


def _of_others(live: Object, at: Path, manager: str) -> Iterator[tuple[str, Tree]]:
    """Who else owns something below a path, and what."""
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
    """The highest paths that are owned and not wanted; not what the server fills in."""
    for key, subtree in children(tree):
        at = (*path, name_in_path(key))
        current = step(key, have)
        if (wanted := step(key, want, defaulted=True)) is not None:
            yield from _foreign(subtree, wanted, current, at)
        elif current is not None and not _is_default(subtree, current, at, have):
            yield at


def _replaced(tree: Tree, ours: Tree, want: Any, have: Any, path: Path) -> Iterator[Path]:
    """The paths that only others own, with another value than is wanted."""
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
    """Whether all that is owned there has the value that the server would fill in."""
    plain = tuple("*" if name.startswith("[") else name for name in path)
    if is_server_default(plain, value, parent if isinstance(parent, dict) else None):
        return True
    below = list(children(tree))
    return bool(below) and all(
        _is_default(subtree, step(key, value), (*path, name_in_path(key)), value)
        for key, subtree in below
    )


def _strays(want: Any, have: Any, path: Path) -> Iterator[Path]:
    """Unowned values that came with a field which is not wanted, and have its effect without it.

    The old name of a pod's account is filled in by the server, and stands for the new one when
    that is removed.
    """
    accounts = ("serviceAccountName", "serviceAccount")
    if not any(want.get(name) for name in accounts):
        yield from ((*path, name) for name in accounts if have.get(name))


def _entries(live: Object) -> list[Object]:
    entries: list[Object] = live["metadata"].get("managedFields") or []
    return entries


def _is_main(entry: Object, manager: str) -> bool:
    return entry.get("manager") == manager and not entry.get("subresource")
