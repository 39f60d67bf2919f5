"""The desired object of a manifest, in the form that is compared and applied. Pure.

A manifest's status is never applied. That of a ClusterOperator lists the versions to wait for. A
null counts as an absent field.
"""

import base64
import hashlib
import operator
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.payload.model import Manifest, ObjectIdentity

JOB_HASH = "quarterdeck.dev/job-hash"
"""An annotation on our Jobs: the hash of the manifest's spec, because a Job is immutable."""


def desired_object(manifest: Manifest, *, namespaced: bool) -> Object:
    """The object to apply; it shares values with the manifest, which must not be changed."""
    kept = {k: v for k, v in manifest.object.items() if k != "status"}
    # Encoding it and searching for "null" is faster than walking through it.
    desired: Object = _without_nulls(kept) if b"null" in msgspec.json.encode(kept) else kept
    metadata = dict(desired["metadata"])
    if not namespaced:
        metadata.pop("namespace", None)
    match manifest.identity:
        case ObjectIdentity("config.openshift.io", "ClusterOperator"):
            desired.setdefault("spec", {})
        case ObjectIdentity("batch", "Job"):
            marks = {JOB_HASH: job_hash(desired.get("spec") or {})}
            metadata["annotations"] = (metadata.get("annotations") or {}) | marks
        case ObjectIdentity("", "Secret"):
            desired = _with_plain_data(desired)
    return desired | {"metadata": metadata}


def expected_versions(manifest: Manifest) -> dict[str, str]:
    """The versions that a ClusterOperator has to report, by operand."""
    status = manifest.object.get("status")
    versions = status.get("versions") if isinstance(status, dict) else None
    return {
        str(entry["name"]): str(entry["version"])
        for entry in (versions if isinstance(versions, list) else ())
        if isinstance(entry, dict) and "name" in entry and "version" in entry
    }


def related_objects(manifest: Manifest) -> list[Object]:
    """The related objects in a ClusterOperator's manifest."""
    status = manifest.object.get("status")
    related = status.get("relatedObjects") if isinstance(status, dict) else None
    return [one for one in (related if isinstance(related, list) else ()) if isinstance(one, dict)]


def job_hash(spec: Object) -> str:
    """A short hash of a Job's spec."""
    ordered = msgspec.json.encode(spec, order="deterministic")
    return hashlib.sha256(ordered).hexdigest()[:16]


def _without_nulls(value: Any) -> Any:
    """The value without null fields; the same object if there are none."""
    if isinstance(value, dict):
        cut = {k: _without_nulls(child) for k, child in value.items() if child is not None}
        same = len(cut) == len(value) and all(cut[k] is child for k, child in value.items())
        return value if same else cut
    if isinstance(value, list):
        items = [_without_nulls(child) for child in value]
        return value if all(map(operator.is_, items, value)) else items
    return value


def _with_plain_data(secret: Object) -> Object:
    """The Secret as the server stores it, with `stringData` merged into `data`."""
    texts = secret.get("stringData")
    if not isinstance(texts, dict):
        return secret
    encoded = {k: base64.b64encode(str(v).encode()).decode() for k, v in texts.items()}
    rest = {k: v for k, v in secret.items() if k != "stringData"}
    return rest | {"data": (rest.get("data") or {}) | encoded}
