"""From what an operator says to the status of its ClusterOperator."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.conditions import Condition
from quarterdeck.api.config_v1 import ClusterStatusCondition, ObjectReference, OperandVersion
from quarterdeck.api.meta import Key, ObjectMeta
from quarterdeck.api.samples_v1alpha1 import NOTES, Note, NoteSpec, NoteStatus
from quarterdeck.status import (
    Report,
    Retired,
    all_of,
    condition,
    degraded,
    failing,
    merge_conditions,
    remove_conditions,
    standard_conditions,
)
from quarterdeck.status.entries import merged
from quarterdeck.status.report import LISTED_MESSAGES, desired_status
from quarterdeck.status.reporter import completed
from quarterdeck.status.staleness_marks import checking_message, verdict_message

NOW = datetime(2026, 1, 1, 12, 0, 0, 500, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
WELL = Report(conditions=standard_conditions())


def reported(report: Report = WELL, current: dict[str, Any] | None = None) -> dict[str, Any]:
    return desired_status(current or {}, report, NOW)


def one(status: dict[str, Any], type_: str) -> dict[str, Any]:
    return next(dict(it) for it in status["conditions"] if it["type"] == type_)


def test_a_healthy_operator_has_the_four_conditions() -> None:
    found = {it["type"]: it["status"] for it in reported()["conditions"]}
    assert found == {
        "Available": "True",
        "Progressing": "False",
        "Degraded": "False",
        "Upgradeable": "True",
    }
    assert one(reported(), "Degraded") == {
        "type": "Degraded",
        "status": "False",
        "lastTransitionTime": "2026-01-01T12:00:00Z",
        "reason": "AsExpected",
        "message": "",
    }


def test_what_is_not_well_takes_the_place_of_what_would_be() -> None:
    conditions = standard_conditions(
        condition("Degraded", None, "NoData"), condition("Disabled", True)
    )
    assert [(it.type, it.status) for it in conditions][2:] == [
        ("Degraded", "Unknown"),
        ("Upgradeable", "True"),
        ("Disabled", "True"),
    ]


def test_troubles_are_told_in_order_and_the_rest_is_counted() -> None:
    assert degraded("Bad", []).status == "False"
    few = degraded("Bad", ["b", "a"])
    assert (few.status, few.reason, few.message) == ("True", "Bad", "a\nb")
    many = degraded("Bad", [f"trouble {n}" for n in range(LISTED_MESSAGES + 2)])
    assert many.message.splitlines()[-2:] == [f"trouble {LISTED_MESSAGES - 1}", "and 2 more"]


def note(name: str, status: str | None, message: str = "") -> Note:
    ready = Condition(
        type="Ready", status=status or "", reason="R", message=message, last_transition_time=NOW
    )
    return Note(
        metadata=ObjectMeta(namespace="ns", name=name),
        spec=NoteSpec(text=""),
        status=NoteStatus(conditions=(ready,) if status else ()),
    )


def test_objects_fail_when_they_say_so() -> None:
    notes = [note("good", "True"), note("bad", "False", "in use"), note("new", None)]
    assert failing(notes, "Ready") == ["ns/bad: in use"]


def test_the_time_stays_with_the_status_whatever_happened_to_the_message() -> None:
    first = reported()
    challenged = {
        "conditions": [
            it | {"message": checking_message(it["message"])} for it in first["conditions"]
        ]
    }
    assert desired_status(challenged, WELL, LATER)["conditions"] == first["conditions"]


def test_a_verdict_is_answered_with_the_time_of_the_answer() -> None:
    given_up = [
        it | {"status": "Unknown", "message": verdict_message(it["message"], it["status"], 1200)}
        for it in reported()["conditions"]
    ]
    answered = desired_status({"conditions": given_up}, WELL, LATER)
    assert one(answered, "Available")["status"] == "True"
    assert one(answered, "Available")["lastTransitionTime"] == "2026-01-01T13:00:00Z"


def test_what_others_have_written_stays_to_the_last_field() -> None:
    foreign: dict[str, Any] = {
        "conditions": [{"type": "Theirs", "status": "Odd", "unknown": {"deep": [1]}}],
        "versions": [{"name": "operand", "version": "7", "unknown": 1}],
        "relatedObjects": [{"group": "g", "resource": "r", "name": "n", "unknown": None}],
        "extension": {"any": "thing"},
        "unknown": "too",
    }
    status = reported(
        Report(
            conditions=standard_conditions(), versions=(OperandVersion(name="mine", version="1"),)
        ),
        foreign,
    )
    assert status["conditions"][0] == foreign["conditions"][0]
    assert status["versions"] == [*foreign["versions"], {"name": "mine", "version": "1"}]
    assert status["relatedObjects"] == foreign["relatedObjects"]
    assert (status["extension"], status["unknown"]) == ({"any": "thing"}, "too")


def test_a_report_of_nothing_new_adds_no_empty_lists() -> None:
    assert set(reported()) == {"conditions"}


def test_what_is_retired_goes() -> None:
    reference = ObjectReference(group="g", resource="r", namespace="", name="n")
    current = {
        "conditions": [{"type": "Old", "status": "True"}, {"type": "Theirs", "status": "True"}],
        "versions": [{"name": "old", "version": "1"}],
        "relatedObjects": [{"group": "g", "resource": "r", "name": "n"}],
    }
    retired = Retired(conditions=("Old",), versions=("old",), related_objects=(reference,))
    status = reported(Report(conditions=(), retired=retired), current)
    assert status == {
        "conditions": [{"type": "Theirs", "status": "True"}],
        "versions": [],
        "relatedObjects": [],
    }


def test_every_operator_names_its_namespace_and_its_lease_if_it_has_one() -> None:
    report = Report(conditions=(), related_objects=(all_of(NOTES),))
    leading = completed(report, "", "home", Key("leases-here", "sample-operator")).related_objects
    assert [(it.resource, it.namespace, it.name) for it in leading] == [
        ("namespaces", None, "home"),
        ("leases", "leases-here", "sample-operator"),
        ("notes", None, ""),
    ]
    alone = completed(report, "", "home", None).related_objects
    assert [it.resource for it in alone] == ["namespaces", "notes"]


def test_the_version_moves_only_when_the_release_runs() -> None:
    at_old = {"versions": [{"name": "operator", "version": "1"}]}
    rolling = completed(Report(conditions=()), "2", "home", None)
    assert reported(rolling, at_old)["versions"] == at_old["versions"]
    arrived = completed(Report(conditions=(), at_release_version=True), "2", "home", None)
    assert reported(arrived, at_old)["versions"] == [{"name": "operator", "version": "2"}]
    unknown = completed(Report(conditions=(), at_release_version=True), "", "home", None)
    assert reported(unknown, at_old)["versions"] == at_old["versions"]


# --- properties

types = st.sampled_from(["Available", "Degraded", "Disabled", "Theirs"])
conditions = st.lists(
    st.builds(
        condition,
        types,
        st.sampled_from([True, False, None]),
        st.sampled_from(["X", "Y"]),
        st.sampled_from(["", "m", "two\nlines", checking_message("m")]),
    ),
    unique_by=lambda it: it.type,
).map(tuple)
versions = st.lists(
    st.builds(OperandVersion, name=st.sampled_from("ab"), version=st.sampled_from("12")),
    unique_by=lambda it: it.name,
).map(tuple)
references = st.lists(
    st.builds(
        ObjectReference,
        group=st.just(""),
        resource=st.sampled_from("rs"),
        namespace=st.sampled_from([None, "ns"]),
        name=st.sampled_from(["", "n"]),
    ),
    unique_by=lambda it: (it.resource, it.namespace, it.name),
).map(tuple)
reports = st.builds(Report, conditions=conditions, versions=versions, related_objects=references)


@given(st.lists(reports, max_size=3), reports)
def test_reporting_the_same_again_changes_nothing(earlier: list[Report], last: Report) -> None:
    """However the status came to be, the second report of the same is no write."""
    status: dict[str, Any] = {}
    for report in earlier:
        status = desired_status(status, report, NOW)
    settled = desired_status(status, last, NOW)
    assert desired_status(settled, last, LATER) == settled


@given(reports, reports)
def test_a_report_says_all_of_itself_and_keeps_what_it_does_not_speak_of(
    earlier: Report, last: Report
) -> None:
    before = desired_status({}, earlier, NOW)
    after = desired_status(before, last, LATER)
    for said in last.conditions:
        found = one(after, said.type)
        assert (found["status"], found["message"]) == (said.status, said.message)
    spoken_of = {said.type for said in last.conditions}
    kept = [it for it in before.get("conditions", []) if it["type"] not in spoken_of]
    assert [it for it in after.get("conditions", []) if it["type"] not in spoken_of] == kept
    names = [it["name"] for it in after.get("versions", [])]
    assert len(set(names)) == len(names)
    assert {it.name for it in (*earlier.versions, *last.versions)} == set(names)


@given(conditions, conditions)
def test_merging_typed_conditions_is_setting_them_one_by_one(
    old: tuple[ClusterStatusCondition, ...], new: tuple[ClusterStatusCondition, ...]
) -> None:
    merged = merge_conditions(old, new, NOW)
    assert merge_conditions(merged, new, LATER) == merged
    assert {it.type for it in merged} == {it.type for it in (*old, *new)}
    gone = [it.type for it in new]
    rest = [it for it in old if it.type not in gone]
    assert list(remove_conditions(merged, gone)) == rest


def by_name(version: OperandVersion) -> str:
    return version.name


def itself(reference: ObjectReference) -> ObjectReference:
    return reference


@given(versions, versions)
def test_versions_are_added_and_updated_and_removed_only_when_asked(
    old: tuple[OperandVersion, ...], new: tuple[OperandVersion, ...]
) -> None:
    found = merged(old, new, by_name)
    assert merged(found, new, by_name) == found
    assert {it.name: it.version for it in found} == (
        {it.name: it.version for it in old} | {it.name: it.version for it in new}
    )
    assert merged(found, (), by_name, [it.name for it in found]) == ()


@given(references, references)
def test_related_objects_are_added_once(
    old: tuple[ObjectReference, ...], new: tuple[ObjectReference, ...]
) -> None:
    found = merged(old, new, itself)
    assert set(found) == {*old, *new}
    assert len(set(found)) == len(found)
    assert merged(found, (), itself, new) == tuple(it for it in old if it not in new)
