"""What is made of a ClusterOperator: its state, what is stale, and who comes first."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.status.health import (
    ORDER,
    ConditionMark,
    OperatorHealth,
    OperatorState,
    health_of,
    worst_first,
)
from quarterdeck.status.staleness import CHECKED
from quarterdeck.status.staleness_marks import checking_message, verdict_message

WELL = {"Available": "True", "Progressing": "False", "Degraded": "False", "Upgradeable": "True"}


def cluster_operator(name: str = "x", **statuses: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "status": {
            "conditions": [
                {
                    "type": type_,
                    "status": status,
                    "reason": "R",
                    "message": f"{type_} is {status}",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
                for type_, status in statuses.items()
            ]
        },
    }


def marked(mark: ConditionMark, obj: dict[str, Any], *types: str) -> dict[str, Any]:
    """The object after the checker wrote to these conditions; all that it looks at without any."""

    def write(one: dict[str, Any]) -> dict[str, Any]:
        if one["type"] not in (types or CHECKED):
            return one
        if mark is ConditionMark.CHECKING:
            return one | {"message": checking_message(one["message"])}
        verdict = verdict_message(one["message"], one["status"], 1200)
        return one | {"status": "Unknown", "message": verdict}

    return {**obj, "status": {"conditions": [write(one) for one in obj["status"]["conditions"]]}}


def state(**statuses: str) -> OperatorState:
    return health_of(cluster_operator(**WELL | statuses)).state


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        pytest.param({}, OperatorState.WELL, id="all as expected"),
        pytest.param(
            {"Available": "False", "Degraded": "True"}, OperatorState.UNAVAILABLE, id="not there"
        ),
        pytest.param(
            {"Degraded": "True", "Progressing": "True"}, OperatorState.DEGRADED, id="degraded"
        ),
        pytest.param(
            {"Available": "Unknown"}, OperatorState.UNKNOWN, id="an operator that does not know"
        ),
        pytest.param(
            {"Degraded": "Unknown"}, OperatorState.UNKNOWN, id="nor whether it is degraded"
        ),
        pytest.param({"Progressing": "True"}, OperatorState.PROGRESSING, id="rolling out"),
        pytest.param(
            {"Upgradeable": "False"}, OperatorState.WELL, id="not upgradeable is no ailment"
        ),
        pytest.param({"Disabled": "True"}, OperatorState.DISABLED, id="nothing to do"),
        pytest.param({"Disabled": "False"}, OperatorState.WELL, id="something to do"),
        pytest.param(
            {"Disabled": "True", "Degraded": "True"}, OperatorState.DEGRADED, id="even so ill"
        ),
    ],
)
def test_the_state_of_an_operator(statuses: dict[str, str], expected: OperatorState) -> None:
    assert state(**statuses) is expected


def test_one_that_has_not_reported_is_unknown() -> None:
    found = health_of({"metadata": {"name": "x"}})
    assert (found.state, found.conditions, found.decisive_condition) == (
        OperatorState.UNKNOWN,
        (),
        None,
    )


def test_one_without_conditions_that_count_is_unknown() -> None:
    assert health_of(cluster_operator(Progressing="False")).state is OperatorState.UNKNOWN


def test_a_checked_one_is_as_well_as_it_says() -> None:
    found = health_of(marked(ConditionMark.CHECKING, cluster_operator(**WELL)))
    assert (found.state, found.checking) == (OperatorState.WELL, True)
    assert found.decisive_condition is not None
    assert found.decisive_condition.message == "Available is True"


def test_one_that_was_given_up_is_stale_and_says_what_was_known() -> None:
    found = health_of(marked(ConditionMark.STALE, cluster_operator(**WELL, Disabled="True")))
    assert (found.state, found.checking) == (OperatorState.STALE, False)
    assert [one.last_known for one in found.conditions] == [*WELL.values(), "True"]
    assert found.conditions[0].silence == "20 minutes"
    assert found.conditions[0].message == "Available is True"


def test_one_that_answered_in_part_is_not_stale() -> None:
    found = health_of(marked(ConditionMark.STALE, cluster_operator(**WELL), "Degraded"))
    assert found.state is OperatorState.UNKNOWN


def test_texts_of_the_checker_on_other_conditions_are_the_operators_own() -> None:
    found = health_of(
        marked(ConditionMark.CHECKING, cluster_operator(**WELL, Other="True"), "Other")
    )
    assert not found.checking


def test_broken_entries_are_shown_as_far_as_they_go() -> None:
    odd = {"type": "Available", "status": "True", "lastTransitionTime": None, "message": None}
    (found,) = health_of({"metadata": {"name": "x"}, "status": {"conditions": [odd]}}).conditions
    assert (found.since, found.message, found.reason) == (None, "", "")


healths = st.builds(
    lambda name, state: OperatorHealth(
        name=name, state=state, checking=False, versions={}, conditions=()
    ),
    st.sampled_from("abcdef"),
    st.sampled_from(OperatorState),
)


@given(st.lists(healths))
def test_the_worst_come_first_and_then_by_name(many: list[OperatorHealth]) -> None:
    shown = worst_first(many)
    assert sorted(map(str, shown)) == sorted(map(str, many))
    ranks = [(ORDER.index(one.state), one.name) for one in shown]
    assert ranks == sorted(ranks)


def test_what_cannot_be_used_comes_before_what_is_merely_ill_and_disabled_is_last() -> None:
    assert ORDER[0] is OperatorState.UNAVAILABLE
    assert ORDER[-2:] == (OperatorState.WELL, OperatorState.DISABLED)
