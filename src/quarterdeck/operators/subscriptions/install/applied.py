"""The record of what was last applied to a Deployment, in an annotation of it. Pure.

A Deployment whose configuration is faulty keeps the spec that was last applied. Its fields cannot
tell: somebody may have edited them. The record is written in the same request as the spec.
"""

import base64
import binascii
import zlib

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.operators.subscriptions.names import OWNER

APPLIED = "quarterdeck.dev/applied"
MAX_TEXT = 2 << 20
"""The most bytes of a record, unpacked; etcd accepts objects up to 1.5 MiB."""
MAX_RECORD = 128 << 10
"""The most characters of the annotation: all annotations of an object have 256 KiB."""


def with_record(desired: Object) -> Object:
    """The desired object with the record of itself; without one if it is too long."""
    text = msgspec.json.encode(desired, order="sorted")
    record = base64.b64encode(zlib.compress(text, 6)).decode()
    if len(record) > MAX_RECORD:
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
    found = _unpacked(annotations.get(APPLIED, ""))
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


def _unpacked(record: str) -> Object:
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(base64.b64decode(record, validate=True), MAX_TEXT)
        found = msgspec.json.decode(text)
    except (binascii.Error, ValueError, zlib.error, msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
