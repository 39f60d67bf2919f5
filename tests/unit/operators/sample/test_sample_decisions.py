"""What the sample operator wants, as pure functions."""

from datetime import UTC, datetime, timedelta

from quarterdeck.api.meta import Key, ObjectMeta
from quarterdeck.api.samples_v1alpha1 import Note, NoteSpec
from quarterdeck.controller import controller_of, key_of
from quarterdeck.operators.sample.controller import desired_config_map, desired_status, health
from quarterdeck.status import find_condition

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOTE = Note(
    metadata=ObjectMeta(namespace="ns", name="n", uid="u", generation=7), spec=NoteSpec(text="hi")
)


def test_the_config_map_has_the_notes_name_and_text_and_goes_with_it() -> None:
    desired = desired_config_map(NOTE)
    owner = controller_of(desired)
    assert key_of(desired) == Key("ns", "n")
    assert desired["data"] == {"text": "hi"}
    assert owner is not None
    assert owner.uid == "u"


def test_a_note_without_trouble_is_ready() -> None:
    status = desired_status(NOTE, "Written", "", NOW)
    (ready,) = status.conditions
    assert status.observed_generation == 7
    assert (ready.type, ready.status, ready.reason) == ("Ready", "True", "Written")


def test_the_operator_is_degraded_by_the_notes_that_are_not_ready() -> None:
    assert [one.status for one in health([NOTE]).conditions] == ["True", "False", "False", "True"]
    failed = Note(
        metadata=NOTE.metadata,
        spec=NOTE.spec,
        status=desired_status(NOTE, "Forbidden", "not allowed", NOW),
    )
    said = find_condition(health([NOTE, failed]).conditions, "Degraded")
    assert said is not None
    assert (said.status, said.message) == ("True", "ns/n: not allowed")


def test_trouble_is_the_conditions_message_and_keeps_its_time() -> None:
    first = desired_status(NOTE, "Forbidden", "not allowed", NOW)
    troubled = Note(metadata=NOTE.metadata, spec=NOTE.spec, status=first)
    (ready,) = desired_status(troubled, "Taken", "in use", NOW + timedelta(days=1)).conditions
    assert (ready.status, ready.reason, ready.message) == ("False", "Taken", "in use")
    assert ready.last_transition_time == NOW
