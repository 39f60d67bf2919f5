"""Keeps the text of each Note in a ConfigMap of the same name."""

from datetime import datetime

from quarterdeck.api.conditions import Condition
from quarterdeck.api.meta import CONFIG_MAPS, Key, Object
from quarterdeck.api.samples_v1alpha1 import NOTES, Note, NoteStatus
from quarterdeck.controller import DONE, Controller, Manager, Result, Selection, StatusWriter
from quarterdeck.controller.metadata import owned_by
from quarterdeck.controller.watch import Watch, to_owner
from quarterdeck.kube import LabelSelector
from quarterdeck.status import Report, Reporter, all_of, degraded, failing, healthy, set_condition

OURS = {"app.kubernetes.io/managed-by": "quarterdeck-sample"}


def desired_config_map(note: Note) -> Object:
    """The ConfigMap of a note; it is deleted with the note."""
    metadata = {"name": note.metadata.name, "labels": OURS, **owned_by(note)}
    return {"metadata": metadata, "data": {"text": note.spec.text}}


def desired_status(note: Note, reason: str, why: str, now: datetime) -> NoteStatus:
    """The status of the note: ready, or why it is not."""
    ok = "False" if why else "True"
    ready = Condition(type="Ready", status=ok, reason=reason, message=why, last_transition_time=now)
    conditions = set_condition(note.status.conditions, ready, now)
    return NoteStatus(observed_generation=note.metadata.generation, conditions=conditions)


def health(notes: list[Note]) -> Report:
    """The report of the operator: degraded if a note could not be written."""
    conditions = healthy(degraded("NotesNotWritten", failing(notes, "Ready")))
    return Report(conditions=conditions, related_objects=(all_of(NOTES),), runs_release=True)


def setup(manager: Manager) -> None:
    """Add the controller of notes, and a reporter."""
    notes = manager.objects(NOTES, writes=["status"])
    ours = Selection(labels=LabelSelector(match_labels=OURS))
    config_maps = manager.objects(CONFIG_MAPS, ours, writes=["ensure"])

    async def reconcile(key: Key) -> Result:
        note = notes.get(key)
        if note is None or note.metadata.deletion_timestamp:
            return DONE
        await config_maps.ensure(desired_config_map(note))
        await notes.set_status(note, desired_status(note, "Written", "", manager.now()))
        return DONE

    owned, faults = Watch(config_maps, to_owner(NOTES)), StatusWriter(notes, desired_status)
    manager.add(Controller("note", reconcile, [Watch(notes), owned], workers=16, status=faults))
    Reporter(manager, "sample", lambda _: health(notes.all()), [Watch(notes)])
