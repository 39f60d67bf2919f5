"""Rebooking the managedFields of an object that we created. Pure.

What we create with POST is booked under our name with the operation Update, and an apply
does not take fields away from that entry. `objects.py` says when that matters.
"""

from quarterdeck.api.meta import Object
from quarterdeck.kube.compare import merged_fields


def rebooked(entries: list[Object], manager: str) -> list[Object]:
    """The entries with what we created booked as applied, so that an apply can remove it."""
    created = [entry for entry in entries if _is_ours(entry, manager, "Update")]
    applied = [entry for entry in entries if _is_ours(entry, manager, "Apply")]
    others = [entry for entry in entries if entry not in created and entry not in applied]
    fields: Object = {}
    for entry in (*applied, *created):
        fields = merged_fields(fields, entry.get("fieldsV1") or {})
    latest = (applied or created)[0]
    return [*others, {**latest, "operation": "Apply", "fieldsV1": fields}]


def _is_ours(entry: Object, manager: str, operation: str) -> bool:
    """Whether an entry is that of our writes to the object itself, not to a subresource."""
    return (
        entry.get("manager") == manager
        and entry.get("operation") == operation
        and not entry.get("subresource")
    )
