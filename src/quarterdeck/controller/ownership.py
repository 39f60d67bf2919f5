"""Who owns which fields of an object: what managedFields say, and how ownership moves. Pure.

What we create with POST is recorded under our name with the operation Update, and an apply does
not take fields away from that entry. `objects.py` says when that matters, and `handle.py` when an
object moves from one owner to another.

Of Update entries the server keeps ten, and joins the oldest under the name `ancient-changes`;
Apply entries stay. So what somebody created or updated before more than ten others did is nobody's
after that, and no claim, prune or apply finds it.
"""

from collections.abc import Iterable

from quarterdeck.api.meta import Object
from quarterdeck.kube.compare import merged_fields


def as_applied(entries: list[Object], manager: str) -> list[Object]:
    """The entries with what we created recorded as applied, so that an apply can remove it."""
    created = [entry for entry in entries if _is_ours(entry, manager, "Update")]
    applied = [entry for entry in entries if _is_ours(entry, manager, "Apply")]
    others = [entry for entry in entries if entry not in created and entry not in applied]
    return [*others, _as_applied([*applied, *created])]


def moved(entries: list[Object], old: str, new: str) -> list[Object]:
    """The entries with all that one manager owns as owned by another, by one Apply entry.

    What the old owner created and what it applied are joined, so that the next apply of the new
    one removes whatever it does not want. Entries of subresources keep their operation: an apply
    of the object does not reach what they own.
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
    # Their Apply entry first: it says in which version the fields are written.
    theirs.sort(key=lambda entry: entry.get("operation") != "Apply")
    return [*kept, {**_as_applied([*ours, *theirs]), "manager": new}]


def owns_labels(live: Object, manager: str, labels: Iterable[str]) -> bool:
    """Whether a manager has written each of these labels of an object."""
    owned: Object = {}
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("manager") == manager and _is_main(entry):
            owned = merged_fields(owned, entry.get("fieldsV1") or {})
    found = owned.get("f:metadata", {}).get("f:labels", {})
    return all(f"f:{label}" in found for label in labels)


def _as_applied(entries: list[Object]) -> Object:
    """One Apply entry for all; the first one says the rest."""
    fields: Object = {}
    for entry in entries:
        fields = merged_fields(fields, entry.get("fieldsV1") or {})
    return {**entries[0], "operation": "Apply", "fieldsV1": fields}


def _is_main(entry: Object) -> bool:
    """Whether an entry is of writes to the object itself, not to a subresource."""
    return not entry.get("subresource")


def _is_ours(entry: Object, manager: str, operation: str) -> bool:
    return (
        entry.get("manager") == manager and entry.get("operation") == operation and _is_main(entry)
    )


def _identity(entry: Object) -> tuple[object, ...]:
    """What tells two entries apart for the server."""
    return tuple(entry.get(it) for it in ("manager", "operation", "apiVersion", "subresource"))
