"""Decides what to do about one manifest, given the live object. Pure.

The first rule that fits decides:

- `release.openshift.io/delete: "true"` deletes, only while updating, and waits until the object
  is gone. Any other value is an error.
- A Job runs once for each spec. It is created while initializing and updating. On a settled cluster
  it has run before and is left alone, whether it exists or not.
- A missing object is created. An object that is being deleted is waited for, and then created.
- `release.openshift.io/create-only: "true"` leaves an existing object as it is.
- A CustomResourceDefinition that somebody else installed is never overwritten: see
  `status.definitions`.
- An immutable object is deleted and created again: a Job with another spec, after its pods, so that
  the old and the new one never run at once; a binding to another role.
- Any other object is applied if a field of the manifest differs, or if we own a field that the
  manifest no longer has. In the spec of a pod template, fields of other managers are removed too. A
  Job with such a field (only a suspended Job can get one) is deleted and created again.
"""

from typing import TypeAlias

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.kube import covers, unsettled
from quarterdeck.operators.cluster_version.sync.desired import JOB_HASH
from quarterdeck.operators.cluster_version.sync.pod_template import describe_owners, foreign_fields
from quarterdeck.operators.cluster_version.sync.progress import DONE, Done, Failed, Waiting
from quarterdeck.payload import annotations as known
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import Manifest, ObjectIdentity
from quarterdeck.status.definitions import foreign_definition, is_foreign
from quarterdeck.status.rollout import READINESS

FIELD_MANAGER = "quarterdeck-cluster-version"


class Apply(msgspec.Struct, frozen=True):
    """Create the object, or apply what differs."""

    changed: tuple[str, ...]
    """The fields that differ; empty for a missing object."""
    foreign: dict[str, list[str]] = {}
    """The pod template's fields that other managers have set, by manager."""


class Delete(msgspec.Struct, frozen=True):
    """Delete the object; a later plan creates it again if it is still desired."""

    why: str


class Leave(msgspec.Struct, frozen=True):
    """Do nothing: the object is as desired, though perhaps not ready."""


Plan: TypeAlias = Apply | Delete | Leave | Done | Waiting | Failed
"""What to do, or the outcome if there is nothing to do."""


def plan(manifest: Manifest, desired: Object, live: Object | None, mode: Mode) -> Plan:
    """What to do about the manifest in this mode."""
    marks = manifest.annotations
    if known.DELETE in marks:
        return _deletion(manifest, live, mode)
    job = is_job(manifest.identity)
    if job and mode is Mode.RECONCILING:
        return DONE
    if live is None:
        return Apply(())
    if going := _going(live):
        return going
    if marks.get(known.CREATE_ONLY) == "true":
        return Leave()
    if is_definition(manifest.identity) and is_foreign(live):
        return foreign_definition(desired, live)
    foreign = foreign_fields(manifest.identity, live, desired, FIELD_MANAGER)
    if job:
        return _job(desired, live, foreign)
    if "roleRef" in desired and not covers(live, {"roleRef": desired["roleRef"]}):
        return Delete("it is bound to another role, which cannot be changed")
    changed = (
        *unsettled(live, desired, FIELD_MANAGER),
        *(path for paths in foreign.values() for path in paths),
    )
    return Apply(changed, foreign) if changed else Leave()


def is_job(identity: ObjectIdentity) -> bool:
    """Whether the object is a Job."""
    return (identity.group, identity.kind) == ("batch", "Job")


def is_definition(identity: ObjectIdentity) -> bool:
    """Whether the object is a CustomResourceDefinition."""
    return (identity.group, identity.kind) == (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
    )


def _deletion(manifest: Manifest, live: Object | None, mode: Mode) -> Plan:
    value = manifest.annotations[known.DELETE]
    if value != "true":
        message = f'{known.DELETE} is {value!r}; write "true", or remove it to keep the object'
        return Failed("DeleteAnnotationInvalid", message)
    if known.CREATE_ONLY in manifest.annotations:
        message = f"{known.DELETE} and {known.CREATE_ONLY} contradict each other; remove one"
        return Failed("DeleteAnnotationInvalid", message)
    if live is None or mode is not Mode.UPDATING:
        return DONE
    return _going(live) or Delete("the release no longer has it")


def _going(live: Object) -> Waiting | None:
    metadata = live["metadata"]
    if not metadata.get("deletionTimestamp"):
        return None
    message = f"it is being deleted since {metadata['deletionTimestamp']}"
    if finalizers := metadata.get("finalizers"):
        message += f"; who set the finalizers {', '.join(finalizers)} must let go of it"
    return Waiting("ObjectTerminating", message)


def _job(desired: Object, live: Object, foreign: dict[str, list[str]]) -> Plan:
    if _is_other_job(desired, live):
        return Delete("its spec is another one")
    ours = JOB_HASH in (live["metadata"].get("annotations") or {})
    if foreign and ours and isinstance(READINESS["batch", "Job"](live), Waiting):
        return Delete(f"its pod template was changed: {describe_owners(foreign)}")
    return Leave()


def _is_other_job(desired: Object, live: Object) -> bool:
    """Whether the live Job has another spec: by our hash, else by comparing the fields."""
    was = (live["metadata"].get("annotations") or {}).get(JOB_HASH)
    if was is None:
        return not covers(live, {"spec": desired.get("spec") or {}})
    return bool(was != desired["metadata"]["annotations"][JOB_HASH])
