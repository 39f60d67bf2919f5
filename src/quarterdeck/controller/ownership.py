"""Which field manager owns which fields, from managedFields, and how ownership moves. Pure.

The server records what we create with POST under our name with the operation Update, and an apply
removes no fields of that entry. `objects.py` explains when that matters; `Handle.claim` moves an
object from one owner to another.

The server keeps ten Update entries, and joins the oldest under the name `ancient-changes`; Apply
entries stay. So when more than ten other managers have updated an object, the ownership of earlier
creates and updates is lost, and no claim, prune or apply finds it.
"""

from collections.abc import Iterable

from quarterdeck.api.meta import Object
from quarterdeck.kube.compare import merged_fields


def as_applied(entries: list[Object], manager: str) -> list[Object]:
    """The entries with our created fields recorded as applied, so that an apply can remove them."""
    created = [entry for entry in entries if _is_ours(entry, manager, "Update")]
    applied = [entry for entry in entries if _is_ours(entry, manager, "Apply")]
    others = [entry for entry in entries if entry not in created and entry not in applied]
    return [*others, _as_applied([*applied, *created])]


def moved(entries: list[Object], old: str, new: str) -> list[Object]:
    """The entries with all fields of the manager `old` in one Apply entry of `new`.

    The fields that the old owner created and applied are joined, so that the next apply of the new
    owner removes those that it does not want. Entries of subresources keep their operation: an
    apply of the object does not change their fields.
    """
    theirs = [entry for entry in entries if _is_main(entry) and entry.get("manager") == old]
    ours = [entry for entry in entries if _is_ours(entry, new, "Apply")]
    others = [entry for entry in entries if entry not in theirs and entry not in ours]
    kept: list[Object] = []
    for entry in others:
        mine = {**entry, "manager": new} if entry.get("manager") == old else {**entry}
        same = next((it for it in kept if _identity(it) == _identity(mine)), None)
        if same is None:
            kept.append(mine)
        else:
            same["fieldsV1"] = merged_fields(same.get("fieldsV1") or {}, mine.get("fieldsV1") or {})
    if not theirs:
        return [*kept, *ours]
    # Their Apply entry first: the joined entry gets its apiVersion.
    theirs.sort(key=lambda entry: entry.get("operation") != "Apply")
    return [*kept, {**_as_applied([*ours, *theirs]), "manager": new}]


def owns_labels(live: Object, manager: str, labels: Iterable[str]) -> bool:
    """Whether the manager owns each of these labels of the object."""
    owned: Object = {}
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and _is_main(entry):
            owned = merged_fields(owned, entry.get("fieldsV1") or {})
    found = owned.get("f:metadata", {}).get("f:labels", {})
    return all(f"f:{label}" in found for label in labels)


def _as_applied(entries: list[Object]) -> Object:
    """One Apply entry with all fields; the rest is taken from the first entry."""
    fields: Object = {}
    for entry in entries:
        fields = merged_fields(fields, entry.get("fieldsV1") or {})
    return {**entries[0], "operation": "Apply", "fieldsV1": fields}


def _is_main(entry: Object) -> bool:
    """Whether the entry is about the object itself, not about a subresource."""
    return not entry.get("subresource")


def _is_ours(entry: Object, manager: str, operation: str) -> bool:
    return (
        entry.get("manager") == manager and entry.get("operation") == operation and _is_main(entry)
    )


def _identity(entry: Object) -> tuple[object, ...]:
    """What identifies an entry for the server."""
    return tuple(entry.get(it) for it in ("manager", "operation", "apiVersion", "subresource"))
