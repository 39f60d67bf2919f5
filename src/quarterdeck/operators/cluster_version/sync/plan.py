"""What is to be done about one manifest, given the object that there is. Pure.

The rules, first match first:

- `release.openshift.io/delete: "true"` deletes, only while updating, and waits until the object
  is gone. Any other value is an error.
- A Job runs once for each spec. It is made while initializing and updating; on a settled cluster
  it has long run, and is left alone, whether it is there or not.
- What is not there is created. What is being deleted is waited for, and then created.
- `release.openshift.io/create-only: "true"`: what is there stays as it is.
- A CustomResourceDefinition that somebody else installed is never overwritten: see `is_foreign`.
- What cannot be changed is deleted and created again: a Job with another spec, with its pods
  gone first, so that the old and the new one never run at once; a binding to another role.
- Everything else is applied if it differs in a field that the manifest has, or has one from us
  that the manifest no longer has. In the spec of a pod template nobody else's field stays either;
  a Job with such a one, which only a suspended Job can get, is made anew.
"""

from typing import Any, TypeAlias

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.kube import covers, unsettled
from quarterdeck.operators.cluster_version.sync.desired import JOB_HASH
from quarterdeck.operators.cluster_version.sync.pod_template import foreign_fields, told
from quarterdeck.operators.cluster_version.sync.progress import DONE, Done, Failed, Outcome, Waiting
from quarterdeck.payload import annotations as known
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import Identity, Manifest
from quarterdeck.status.rollout import READINESS

FIELD_MANAGER = "quarterdeck-cluster-version"
OURS = "quarterdeck-"
"""How the names of our field managers begin, those of `quarterdeck local` and `install` too."""


class Write(msgspec.Struct, frozen=True):
    """Create the object, or apply what differs."""

    changed: tuple[str, ...]
    """The fields that differ; none for an object that is not there."""
    foreign: dict[str, list[str]] = {}
    """Who else has set something in the pod template's spec, and what."""


class Delete(msgspec.Struct, frozen=True):
    """Delete the object; one that is to be made anew is made when it is gone."""

    why: str


class Leave(msgspec.Struct, frozen=True):
    """The object is as it should be; whether it is ready is another question."""


Plan: TypeAlias = Write | Delete | Leave | Done | Waiting | Failed
"""What to do, or, where there is nothing to do or wait for, what came of it."""


def plan(manifest: Manifest, desired: Object, live: Object | None, mode: Mode) -> Plan:
    """What to do about the manifest."""
    marks = manifest.annotations
    if known.DELETE in marks:
        return _deletion(manifest, live, mode)
    job = is_job(manifest.identity)
    if job and mode is Mode.RECONCILING:
        return DONE
    if live is None:
        return Write(())
    if going := _going(live):
        return going
    if marks.get(known.CREATE_ONLY) == "true":
        return Leave()
    if is_definition(manifest.identity) and is_foreign(live):
        return _foreign_definition(desired, live)
    foreign = foreign_fields(manifest.identity, live, desired, FIELD_MANAGER)
    if job:
        return _job(desired, live, foreign)
    if "roleRef" in desired and not covers(live, {"roleRef": desired["roleRef"]}):
        return Delete("it is bound to another role, which cannot be changed")
    changed = (
        *unsettled(live, desired, FIELD_MANAGER),
        *(path for paths in foreign.values() for path in paths),
    )
    return Write(changed, foreign) if changed else Leave()


def is_job(identity: Identity) -> bool:
    """Whether the object is a Job."""
    return (identity.group, identity.kind) == ("batch", "Job")


def is_definition(identity: Identity) -> bool:
    """Whether the object defines a kind."""
    return (identity.group, identity.kind) == (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
    )


def is_foreign(live: Object) -> bool:
    """Whether nothing in the object was written by a program of ours.

    The server records in managedFields which program wrote which field. Whoever wants
    to hand a definition over to us writes one field of it under such a name, an annotation say:
    `kubectl annotate --field-manager=quarterdeck-install crd NAME quarterdeck.dev/owner=true`.
    """
    return not any(
        str(entry.get("manager", "")).startswith(OURS)
        for entry in live["metadata"].get("managedFields") or ()
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


def _foreign_definition(desired: Object, live: Object) -> Outcome:
    """Left alone; good enough if it serves the versions that the payload counts on."""
    missing = _served(desired) - _served(live)
    owners = sorted({str(e.get("manager")) for e in live["metadata"].get("managedFields") or ()})
    who = f"it was installed by {', '.join(owners) or 'somebody else'} and is left as it is"
    if missing:
        message = f"{who}, but does not serve {', '.join(sorted(missing))}; update it there"
        return Failed("ForeignDefinition", message)
    return Done("ForeignDefinition", who)


def _served(definition: Object) -> set[str]:
    versions: Any = (definition.get("spec") or {}).get("versions") or ()
    return {str(version.get("name")) for version in versions if version.get("served")}


def _job(desired: Object, live: Object, foreign: dict[str, list[str]]) -> Plan:
    if _is_other_job(desired, live):
        return Delete("its spec is another one")
    ours = JOB_HASH in (live["metadata"].get("annotations") or {})
    if foreign and ours and isinstance(READINESS["batch", "Job"](live), Waiting):
        return Delete(f"its pod template was changed: {told(foreign)}")
    return Leave()


def _is_other_job(desired: Object, live: Object) -> bool:
    """Whether the Job there was made from another spec; if not by us, it is compared."""
    was = (live["metadata"].get("annotations") or {}).get(JOB_HASH)
    if was is None:
        return not covers(live, {"spec": desired.get("spec") or {}})
    return bool(was != desired["metadata"]["annotations"][JOB_HASH])
