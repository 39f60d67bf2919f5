"""Setting a condition among others."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.conditions import Condition
from quarterdeck.status import find_condition, set_condition

THEN = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOW = THEN + timedelta(hours=1)


def condition(type_: str, status: str, reason: str = "Because") -> Condition:
    return Condition(
        type=type_, status=status, reason=reason, message="", last_transition_time=THEN
    )


def test_a_new_condition_comes_last_and_is_dated_now() -> None:
    first = condition("Ready", "True")
    after = set_condition([first], condition("Degraded", "False"), NOW)
    assert [one.type for one in after] == ["Ready", "Degraded"]
    assert after[0] is first
    assert after[1].last_transition_time == NOW


def test_the_transition_time_moves_when_the_status_does() -> None:
    (after,) = set_condition([condition("Ready", "True")], condition("Ready", "False"), NOW)
    assert (after.status, after.last_transition_time) == ("False", NOW)


def test_the_transition_time_stays_when_only_the_reason_changes() -> None:
    old = [condition("Ready", "True")]
    (after,) = set_condition(old, condition("Ready", "True", "Better"), NOW)
    assert (after.reason, after.last_transition_time) == ("Better", THEN)


def test_a_time_is_written_in_whole_seconds() -> None:
    (after,) = set_condition([], condition("Ready", "True"), NOW.replace(microsecond=5))
    assert after.last_transition_time == NOW


def test_a_condition_is_found_by_its_type() -> None:
    ready = condition("Ready", "True")
    assert find_condition([condition("A", "True"), ready], "Ready") is ready
    assert find_condition([ready], "Missing") is None


conditions = st.lists(
    st.builds(condition, st.sampled_from("ABC"), st.sampled_from(["True", "False", "Unknown"])),
    unique_by=lambda one: one.type,
)


@given(old=conditions, new=st.builds(condition, st.sampled_from("ABCD"), st.just("True")))
def test_setting_a_condition_again_changes_nothing(old: list[Condition], new: Condition) -> None:
    once = set_condition(old, new, NOW)
    assert set_condition(once, new, NOW + timedelta(days=1)) == once
    assert [one for one in once if one.type != new.type] == [
        one for one in old if one.type != new.type
    ]
