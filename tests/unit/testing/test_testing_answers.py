"""Which operators answer the staleness challenge in time."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.meta import Key
from quarterdeck.status.staleness_marks import checking_message, verdict_message
from quarterdeck.testing.answers import (
    ANSWER_LIMIT,
    Answers,
    LateAnswer,
    deployment_of,
    has_ready_replicas,
    is_marked,
    summary,
)


class Story:
    """One operator, told second by second."""

    def __init__(self) -> None:
        self.answers = Answers()

    def at(self, now: float, *, marked: bool, running: bool = True) -> "Story":
        self.answers.saw("x", marked=marked, running=running, now=now)
        return self


def test_an_answer_in_time_is_measured() -> None:
    story = Story().at(0, marked=False).at(10, marked=True).at(12.5, marked=False)
    assert story.answers.slowest == {"x": 2.5}
    assert story.answers.late == []


def test_the_slowest_answer_is_kept() -> None:
    story = Story().at(0, marked=True).at(5, marked=False).at(6, marked=True).at(7, marked=False)
    assert story.answers.slowest == {"x": 5}


def test_an_answer_that_came_too_late_is_a_failure() -> None:
    story = Story().at(0, marked=True).at(31, marked=False)
    assert story.answers.late == [LateAnswer("x", 31, answered=True)]


def test_no_answer_is_a_failure_as_soon_as_it_is_overdue() -> None:
    story = Story().at(0, marked=True)
    assert story.answers.overdue(ANSWER_LIMIT) == []
    (late,) = story.answers.overdue(ANSWER_LIMIT + 1)
    assert not late.answered
    assert str(late).startswith("ClusterOperator x: the staleness checker's text stood for 31.0 s")


def test_an_operator_that_does_not_run_need_not_answer() -> None:
    story = Story().at(0, marked=True, running=False)
    assert story.answers.overdue(1000) == []
    assert story.at(1001, marked=False, running=False).answers.late == []


def test_the_time_counts_from_when_it_runs() -> None:
    story = Story().at(0, marked=True, running=False).at(100, marked=True)
    assert story.answers.overdue(125) == []
    assert story.at(104, marked=False).answers.slowest == {"x": 4}


def test_stopping_is_no_answer_and_a_long_wait_before_it_is_still_a_failure() -> None:
    story = Story().at(0, marked=True).at(10, marked=True, running=False)
    assert (story.answers.slowest, story.answers.late) == ({}, [])
    story = Story().at(0, marked=True).at(40, marked=True, running=False)
    assert story.answers.late == [LateAnswer("x", 40, answered=False)]


def test_a_cluster_operator_that_goes_takes_its_wait_along() -> None:
    story = Story().at(0, marked=True)
    story.answers.gone("x", 40)
    assert story.answers.late == [LateAnswer("x", 40, answered=False)]
    assert story.answers.overdue(100) == []
    story.answers.gone("unknown", 0)


steps = st.lists(
    st.tuples(st.floats(0, 50), st.booleans(), st.booleans()).map(
        lambda it: {"after": it[0], "marked": it[1], "running": it[2]}
    )
)


@given(steps)
def test_a_wait_is_too_long_exactly_when_it_is(told: list[dict[str, Any]]) -> None:
    """Against the plain definition: stretches of time in which it was marked and running."""
    answers, now = Answers(), 0.0
    stretches: list[float] = []
    lasting: float | None = None
    for step in told:
        now += step["after"]
        asked = step["marked"] and step["running"]
        if lasting is not None and not asked:
            stretches.append(now - lasting)
            lasting = None
        elif lasting is None and asked:
            lasting = now
        answers.saw("x", marked=step["marked"], running=step["running"], now=now)
    assert [one.seconds for one in answers.late] == [it for it in stretches if it > ANSWER_LIMIT]


def operator(*messages: tuple[str, str], related: list[dict[str, str]] | None = None) -> Any:
    types = ("Available", "Degraded", "Disabled")
    conditions = [
        {"type": type_, "status": status, "message": message}
        for type_, (status, message) in zip(types, messages, strict=False)
    ]
    status = {"conditions": conditions, "relatedObjects": related or []}
    return {"metadata": {"name": "x"}, "status": status}


def test_a_mark_on_any_condition_that_the_checker_looks_at_counts() -> None:
    well, asked = ("True", "m"), ("True", checking_message("m"))
    assert not is_marked(operator(well, well))
    assert is_marked(operator(well, asked))
    assert is_marked(operator(("Unknown", verdict_message("m", "True", 12)), well))
    assert not is_marked(operator(well, well, asked)), "Disabled is none of them"


def test_the_deployment_is_named_as_the_lease() -> None:
    related = [
        {"group": "apps", "resource": "deployments", "namespace": "home", "name": "operand"},
        {"group": "coordination.k8s.io", "resource": "leases", "namespace": "home", "name": "me"},
    ]
    assert deployment_of(operator(related=related)) == Key("home", "me")
    assert deployment_of(operator(related=related[:1])) is None
    assert deployment_of({"metadata": {"name": "x"}}) is None


def test_a_deployment_runs_while_a_replica_is_ready() -> None:
    assert has_ready_replicas({"metadata": {}, "status": {"readyReplicas": 1}})
    assert not has_ready_replicas({"metadata": {}, "status": {"replicas": 1}})
    assert not has_ready_replicas({"metadata": {}})
    going = {"metadata": {"deletionTimestamp": "now"}, "status": {"readyReplicas": 1}}
    assert not has_ready_replicas(going)
    assert not has_ready_replicas(None)


def test_the_slowest_is_told_first() -> None:
    assert summary({"b": 0.5, "a": 0.5, "slow": 12.345}) == [
        " 12.35 s  slow",
        "  0.50 s  a",
        "  0.50 s  b",
    ]
