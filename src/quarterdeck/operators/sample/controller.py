"""Keeps the text of each Note in a ConfigMap of the same name."""

from datetime import datetime

from quarterdeck.api.conditions import Condition
from quarterdeck.api.meta import CONFIG_MAPS, Key, Object
from quarterdeck.api.samples_v1alpha1 import NOTES, Note, NoteStatus
from quarterdeck.controller import DONE, Controller, Manager, Result, Selection, StatusWriter
from quarterdeck.controller.metadata import owned_by
from quarterdeck.controller.watch import Watch, to_owner
from quarterdeck.kube import LabelSelector
from quarterdeck.status import Reporter, set_condition
from quarterdeck.status.report import Report, all_of, degraded, failing, standard_conditions

LABELS = {"app.kubernetes.io/managed-by": "quarterdeck-sample"}


def desired_config_map(note: Note) -> Object:
    """The ConfigMap of a note; `owned_by` sets its namespace and its owner reference."""
    metadata = {"name": note.metadata.name, "labels": LABELS, **owned_by(note)}
    return {"metadata": metadata, "data": {"text": note.spec.text}}


def desired_status(note: Note, reason: str, message: str, now: datetime) -> NoteStatus:
    """The status of the note: Ready, or a message that says why it is not."""
    status = "False" if message else "True"
    ready = Condition(
        type="Ready", status=status, reason=reason, message=message, last_transition_time=now
    )
    conditions = set_condition(note.status.conditions, ready, now)
    return NoteStatus(observed_generation=note.metadata.generation, conditions=conditions)


def health(notes: list[Note]) -> Report:
    """The report of the operator: Degraded while a note is not Ready."""
    conditions = standard_conditions(degraded("NotesNotWritten", failing(notes, "Ready")))
    return Report(conditions=conditions, related_objects=(all_of(NOTES),), at_release_version=True)


def setup(manager: Manager) -> None:
    """Add the controller of notes and the reporter of the operator."""
    notes = manager.objects(NOTES, writes=["status"])
    labelled = Selection(labels=LabelSelector(match_labels=LABELS))
    config_maps = manager.objects(CONFIG_MAPS, labelled, writes=["ensure"])

    async def reconcile(key: Key) -> Result:
        note = notes.get(key)
        if note is None or note.metadata.deletion_timestamp:
            return DONE
        await config_maps.ensure(desired_config_map(note))
        await notes.set_status(note, desired_status(note, "Written", "", manager.now()))
        return DONE

    watches = [Watch(notes), Watch(config_maps, to_owner(NOTES))]
    status = StatusWriter(notes, desired_status)
    manager.add(Controller("note", reconcile, watches, workers=16, status=status))
    Reporter(manager, "sample", lambda _now: health(notes.all()), [Watch(notes)])
