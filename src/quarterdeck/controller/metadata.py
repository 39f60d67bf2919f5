"""Reads and writes metadata, in the same way for typed objects and for dictionaries. Pure."""

from collections.abc import Mapping, Sequence

import msgspec

from quarterdeck.api.meta import Key, Object, OwnerReference, TypedObject


def key_of(obj: TypedObject | Object) -> Key:
    """The object's key."""
    if isinstance(obj, dict):
        return Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
    return Key(obj.metadata.namespace, obj.metadata.name)


def labels_of(obj: TypedObject | Object) -> Mapping[str, str]:
    """The object's labels; do not change them."""
    if isinstance(obj, dict):
        return obj["metadata"].get("labels") or {}
    return obj.metadata.labels


def finalizers_of(obj: TypedObject | Object) -> Sequence[str]:
    """The object's finalizers; do not change them."""
    if isinstance(obj, dict):
        return obj["metadata"].get("finalizers") or []
    return obj.metadata.finalizers


def is_being_deleted(obj: TypedObject | Object) -> bool:
    """Whether the object was deleted and only its finalizers keep it."""
    if isinstance(obj, dict):
        return bool(obj["metadata"].get("deletionTimestamp"))
    return obj.metadata.deletion_timestamp is not None


def as_plain(obj: TypedObject | Object) -> Object:
    """The object as a dictionary."""
    if isinstance(obj, dict):
        return obj
    # Through JSON, because a typed object keeps its managedFields as raw JSON.
    plain: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return plain


def controller_of(obj: TypedObject | Object) -> OwnerReference | None:
    """The owner that controls this object; None if it has none."""
    if not isinstance(obj, dict):
        return next((ref for ref in obj.metadata.owner_references if ref.controller), None)
    for ref in obj["metadata"].get("ownerReferences", ()):
        if ref.get("controller"):
            return msgspec.convert(ref, OwnerReference)
    return None


def owned_by(owner: TypedObject | Object) -> Object:
    """The metadata of an object of this owner: its namespace, and a reference to the owner."""
    key, (api_version, kind, uid) = key_of(owner), _identity(owner)
    reference = {
        "apiVersion": api_version,
        "kind": kind,
        "name": key.name,
        "uid": uid,
        "controller": True,
    }
    return {"namespace": key.namespace, "ownerReferences": [reference]}


def fence(live: TypedObject | Object) -> Object:
    """The uid and resource version: with them the server refuses a write to a changed object."""
    if isinstance(live, dict):
        meta = live["metadata"]
        return {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    return {"uid": live.metadata.uid, "resourceVersion": live.metadata.resource_version}


def reference_to(obj: TypedObject | Object) -> Object:
    """The reference by which an event names its object."""
    key, (api_version, kind, uid) = key_of(obj), _identity(obj)
    reference = {"apiVersion": api_version, "kind": kind, "name": key.name, "uid": uid}
    if key.namespace:
        reference["namespace"] = key.namespace
    return {**reference, "resourceVersion": fence(obj)["resourceVersion"]}


def _identity(obj: TypedObject | Object) -> tuple[str, str, str]:
    if isinstance(obj, dict):
        return obj["apiVersion"], obj["kind"], obj["metadata"]["uid"]
    return obj.api_version, obj.kind, obj.metadata.uid
