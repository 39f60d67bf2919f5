"""The record of what was last applied to a Deployment, in an annotation of it. Pure.

A Deployment whose configuration is faulty keeps the spec that was last applied. Its fields cannot
tell: somebody may have edited them. The record is written in the same request as the spec.
"""

from quarterdeck.api.meta import Object
from quarterdeck.operators.subscriptions.install.records import packed, unpacked
from quarterdeck.operators.subscriptions.names import OWNER

APPLIED = "quarterdeck.dev/applied"


def with_record(desired: Object) -> Object:
    """The desired object with the record of itself; without one if it is too long."""
    record = packed(desired)
    if record is None:
        return desired
    meta = desired["metadata"]
    annotations = {**meta["annotations"], APPLIED: record}
    return {**desired, "metadata": {**meta, "annotations": annotations}}


def last_applied(live: Object) -> Object | None:
    """What was last applied to the object, with its record; None if that is not known.

    Whoever can write the object can write the record too. So it counts only if it is about the
    object of this name, with the same owner.
    """
    meta = live["metadata"]
    annotations = meta.get("annotations") or {}
    found = unpacked(annotations.get(APPLIED, ""))
    match found:
        case {"metadata": {"annotations": dict(), **recorded}, "spec": dict(), **rest} if not rest:
            pass
        case _:
            return None
    told = found["metadata"]["annotations"].get(OWNER)
    same = all(recorded.get(name) == meta.get(name) for name in ("name", "namespace"))
    owners = recorded.get("ownerReferences")
    if not same or told != annotations.get(OWNER) or owners != meta.get("ownerReferences"):
        return None
    return with_record(found)
