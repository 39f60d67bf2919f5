"""Many conditions of parts as one of the ClusterOperator."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.config_v1 import ClusterStatusCondition
from quarterdeck.status import Inertia, inertia_ends, union_condition
from quarterdeck.status.union import EXPECTED, PartCondition

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=3)
JUST_NOW = NOW - timedelta(seconds=30)
TYPES = sorted(EXPECTED)


def part(
    type_: str, status: str, reason: str = "", message: str = "", since: datetime = LONG_AGO
) -> ClusterStatusCondition:
    return ClusterStatusCondition(
        type=type_, status=status, reason=reason, message=message, last_transition_time=since
    )


def union(type_: str, *parts: PartCondition) -> tuple[str, str, str]:
    found = union_condition(type_, parts, NOW)
    assert found.type == type_
    return found.status, found.reason, found.message


@pytest.mark.parametrize("type_", TYPES)
def test_without_a_part_nobody_knows(type_: str) -> None:
    assert union(type_) == ("Unknown", "NoData", "")
    assert union(type_, part("RouterOther", "True")) == ("Unknown", "NoData", "")


@pytest.mark.parametrize(
    ("type_", "status"),
    [
        ("Available", "True"),
        ("Upgradeable", "True"),
        ("Degraded", "False"),
        ("Progressing", "False"),
    ],
)
def test_while_all_parts_are_well_it_is_as_expected(type_: str, status: str) -> None:
    parts = [part(f"{name}{type_}", status, "Fine", f"{name} is fine") for name in "BA"]
    assert union(type_, *parts) == (
        status,
        "AsExpected",
        f"A{type_}: A is fine\nB{type_}: B is fine",
    )


def test_all_that_is_bad_is_told_sorted_with_its_reasons() -> None:
    assert union(
        "Degraded",
        part("RouterDegraded", "True", "Crashing", "exit 1\nexit 1"),
        part("Degraded", "True", "Lost", "no leader"),
        part("CertificateDegraded", "Unknown", "NoAnswer", "timeout"),
        part("FineDegraded", "False", "Fine", "not told"),
    ) == (
        "True",
        "Certificate_NoAnswer::Lost::Router_Crashing",
        "CertificateDegraded: timeout\nDegraded: no leader\nRouterDegraded: exit 1",
    )


def test_what_two_parts_say_is_told_once() -> None:
    told = union(
        "Available",
        part("AAvailable", "False", "X", "same"),
        part("BAvailable", "False", "Y", "same\nmore"),
    )
    assert told == ("False", "A_X::B_Y", "AAvailable: same\nBAvailable: more")


def test_when_nobody_says_the_opposite_it_is_unknown() -> None:
    assert union("Available", part("AAvailable", "Unknown", "X"), part("BAvailable", "True")) == (
        "Unknown",
        "A_X",
        "",
    )


@pytest.mark.parametrize("type_", ["Available", "Upgradeable", "Progressing"])
def test_only_degraded_has_inertia(type_: str) -> None:
    bad = "False" if EXPECTED[type_] == "True" else "True"
    assert union(type_, part(f"A{type_}", bad, "X", since=NOW))[0] == bad
    assert union("Degraded", part("ADegraded", "True", "X", since=NOW))[:2] == (
        "False",
        "AsExpected",
    )


def test_once_one_part_has_lasted_those_that_have_not_are_told_too() -> None:
    lasting, young = part("ADegraded", "True", "X"), part("BDegraded", "True", "Y", since=JUST_NOW)
    assert union("Degraded", young)[:2] == ("False", "AsExpected")
    assert union("Degraded", lasting, young)[:2] == ("True", "A_X::B_Y")


@pytest.mark.parametrize(
    ("age", "counts"),
    [
        pytest.param(timedelta(minutes=2), False, id="two minutes are not longer than two minutes"),
        pytest.param(timedelta(minutes=2, seconds=1), True, id="a second more is"),
    ],
)
def test_the_default_inertia_is_two_minutes(age: timedelta, counts: bool) -> None:
    assert union("Degraded", part("ADegraded", "True", "X", since=NOW - age))[0] == str(counts)


def test_a_part_can_have_an_inertia_of_its_own() -> None:
    inertia = Inertia(by_type={"ADegraded": timedelta(seconds=5)})
    bad = [part("ADegraded", "True", "X", since=JUST_NOW), part("BDegraded", "False")]
    assert union_condition("Degraded", bad, NOW, inertia).status == "True"
    assert union_condition("Degraded", bad, NOW).status == "False"


parts = st.builds(
    part,
    st.builds(str.__add__, st.sampled_from(["", "A", "B", "C"]), st.sampled_from(TYPES)),
    st.sampled_from(["True", "False", "Unknown"]),
    st.sampled_from(["", "X", "Y"]),
    st.sampled_from(["", "one", "one\ntwo", "\n", "two"]),
    st.integers(0, 300).map(lambda seconds: NOW - timedelta(seconds=seconds)),
)


@given(st.sampled_from(TYPES), st.lists(parts, unique_by=lambda one: one.type), st.randoms())
def test_the_order_of_the_parts_does_not_matter(
    type_: str, many: list[ClusterStatusCondition], dice: Random
) -> None:
    shuffled = list(many)
    dice.shuffle(shuffled)
    assert union_condition(type_, many, NOW) == union_condition(type_, shuffled, NOW)


@given(st.sampled_from(TYPES), st.lists(parts))
def test_it_is_bad_exactly_when_a_bad_part_has_lasted(
    type_: str, many: list[ClusterStatusCondition]
) -> None:
    mine = [one for one in many if one.type.endswith(type_)]
    bad = [one for one in mine if one.status != EXPECTED[type_]]
    lasting = [
        one
        for one in bad
        if type_ != "Degraded" or NOW - one.last_transition_time > timedelta(minutes=2)
    ]
    found = union_condition(type_, many, NOW)
    assert (found.status == EXPECTED[type_]) == bool(mine and not lasting)
    if lasting:
        assert found.reason.count("::") == len(bad) - 1
        lines = found.message.split("\n")
        assert len(set(lines)) == len(lines)


@given(st.lists(parts))
def test_the_end_of_inertia_is_when_the_answer_changes(many: list[ClusterStatusCondition]) -> None:
    before = union_condition("Degraded", many, NOW)
    ends = inertia_ends(many, NOW)
    if ends is None:
        later = union_condition("Degraded", many, NOW + timedelta(days=1))
        assert (later.status, later.message) == (before.status, before.message)
    else:
        assert ends > NOW
        a_moment_before = union_condition("Degraded", many, ends - timedelta(seconds=1))
        assert a_moment_before.status == "False"
        assert union_condition("Degraded", many, ends).status != "False"


def test_a_part_without_a_reason_is_told_by_its_name_alone() -> None:
    told = union("Degraded", part("TypeADegraded", "True"), part("TypeBDegraded", "True", "Lost"))
    assert told[1] == "TypeA::TypeB_Lost"
