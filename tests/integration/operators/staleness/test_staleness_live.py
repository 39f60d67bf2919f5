"""The checker on a real API server, with intervals of seconds."""

from datetime import datetime

import pytest
from tests.integration.operators.staleness.board import OPERATOR, TYPES, Board, conditions

from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

QUICK = ("--interval=1s", "--grace=0s")
UNHURRIED = ("--interval=2s", "--grace=0s")
"""For what has to happen within an interval, on a busy machine too."""


@pytest.mark.slow
def test_a_dead_operator_is_asked_then_given_up_and_recovers_by_itself(
    board: Board, checker: StartOperator
) -> None:
    """Both messages, all four conditions, an event for each of the two turns, and metrics."""
    board.create("dead", [*conditions("fine"), {**conditions()[0], "type": "Disabled"}])
    process = checker(*QUICK)
    board.wait_challenged("dead")
    owned = board.owned("dead", "quarterdeck-staleness") or {}
    assert list(owned.values()) == [{"f:message": {}}] * 4, "the rest stays the operator's"
    assert process.metric('cluster_operator_stale{name="dead"}') == 0
    board.wait_given_up("dead")
    said = {one["type"]: one for one in board.said("dead")}
    assert said["Available"]["message"] == (
        "Operator has not updated this condition for more than 2 seconds, "
        'last known condition state was "True", original message: fine'
    )
    assert {one["status"] for kind, one in said.items() if kind != "Disabled"} == {"Unknown"}
    assert said["Disabled"]["message"] == "all is well"
    eventually(lambda: process.metric('cluster_operator_stale{name="dead"}') == 1, "the metric")
    assert len(board.writes()) == 2
    with board.alive("dead", conditions("fine")):
        board.wait_fine("dead")
        eventually(
            lambda: (
                [event["reason"] for event in board.events("dead")]
                == ["OperatorStale", "OperatorRecovered"]
            ),
            "an event for the verdict and one for the recovery",
        )
        eventually(lambda: process.metric('cluster_operator_stale{name="dead"}') == 0, "metric")
        alive = 'cluster_operator_last_proven_alive_timestamp_seconds{name="dead"}'
        assert process.metric(alive) > 0
    # When nobody looks at it any more who would miss it.
    board.delete("dead")
    eventually(lambda: alive not in process.get("/metrics")[1], "its metrics are gone")


@pytest.mark.slow
def test_a_checker_killed_and_started_again_at_every_step_changes_nothing(
    board: Board, checker: StartOperator
) -> None:
    """Each write is made once, whoever makes it, and after it there is nothing left to write."""
    board.create("dead")
    began = checker(*UNHURRIED)
    began.logged("controller started")
    began.kill()
    asks = checker(*UNHURRIED)
    board.wait_challenged("dead")
    asks.kill()
    asked = board.get("dead")
    looks = checker(*UNHURRIED)
    looks.logged("caches synced")
    looks.kill()
    gives_up = checker(*UNHURRIED)
    board.wait_given_up("dead")
    gives_up.kill()
    last = checker(*UNHURRIED)
    eventually(lambda: last.metric('cluster_operator_stale{name="dead"}') == 1, "it knows")
    assert [request.code for request in board.writes()] == [200, 200]
    originals = [one["message"].rpartition(": ")[2] for one in board.said("dead")]
    assert originals == ["all is well"] * 4
    assert asked["status"]["conditions"] != board.said("dead")
    with board.alive("dead"):
        board.wait_fine("dead")
        eventually(lambda: last.metric('cluster_operator_stale{name="dead"}') == 0, "it knows")


@pytest.mark.slow
def test_three_checkers_make_no_more_writes_than_one(board: Board, checker: StartOperator) -> None:
    """Those that were too late are refused and write nothing more."""
    names = [f"dead-{number}" for number in range(5)]
    for name in names:
        board.create(name)
    checkers = [checker(*QUICK) for _ in range(3)]
    stale = [f'cluster_operator_stale{{name="{name}"}} 1.0' for name in names]
    for name in names:
        board.wait_given_up(name)
    eventually(
        lambda: all(line in one.get("/metrics")[1] for one in checkers for line in stale),
        "all of them know",
    )
    done = [request for request in board.writes() if request.code == 200]
    assert sorted(request.name for request in done) == sorted([*names, *names])
    assert {request.code for request in board.writes()} <= {200, 409}
    assert {request.resource for request in done} == {"clusteroperators/status"}
    # Another operator of the same name has not recovered: it was never stale.
    board.delete("dead-1")
    board.create("dead-1")
    with board.alive("dead-0"):
        told = ["OperatorStale", "OperatorRecovered"]
        for process in checkers:
            process.logged("operator recovered")
        eventually(lambda: [one["reason"] for one in board.events("dead-0")] == told, "told once")
    assert "OperatorRecovered" not in [one["reason"] for one in board.events("dead-1")]


@pytest.mark.slow
def test_a_live_operator_is_asked_once_an_interval_and_never_given_up(
    board: Board, checker: StartOperator
) -> None:
    """One write each time, and none of the operator's words is lost."""
    board.create("live")
    with board.alive("live"):
        checker(*UNHURRIED)
        eventually(lambda: len(board.writes()) >= 3, "it is asked again and again")
        board.wait_fine("live")
    assert [event["reason"] for event in board.events("live")] == []
    assert [(one["status"], one["message"]) for one in board.said("live")] == [
        (one["status"], one["message"]) for one in conditions()
    ]


@pytest.mark.slow
def test_a_definition_with_an_atomic_list_has_the_same_outcome(
    board: Board, checker: StartOperator, atomic_conditions: None
) -> None:
    board.create("dead")
    assert board.owned("dead", OPERATOR) == {}
    process = checker(*QUICK)
    board.wait_challenged("dead")
    board.wait_given_up("dead")
    with board.alive("dead"):
        board.wait_fine("dead")
        eventually(lambda: len(board.writes()) >= 3, "it is asked again")
        eventually(lambda: process.metric('cluster_operator_stale{name="dead"}') == 0, "metric")
    assert "OperatorStale" in [event["reason"] for event in board.events("dead")]


@pytest.mark.slow
def test_an_object_without_managed_fields_is_counted_from_when_it_is_first_seen(
    board: Board, checker: StartOperator
) -> None:
    """And one without a status is left alone."""
    board.create("bare", None, finalizers=[])
    patch = '{"metadata": {"managedFields": [{}]}}'
    board.plane.kubectl("patch", "clusteroperator", "bare", "--type=merge", f"--patch={patch}")
    assert "managedFields" not in board.get("bare")["metadata"]
    board.plane.kubectl("create", "--filename=-", input=EMPTY)
    checker(*QUICK)
    board.wait_challenged("bare")
    board.wait_given_up("bare")
    assert [request.name for request in board.writes()] == ["bare", "bare"]


EMPTY = """
apiVersion: config.openshift.io/v1
kind: ClusterOperator
metadata: {name: silent}
spec: {}
"""


@pytest.mark.slow
def test_a_lease_that_is_renewed_spares_an_operator_the_question(
    board: Board, checker: StartOperator
) -> None:
    """Where it asks for that; without the annotation the same operator is asked."""
    lease = {
        "group": "coordination.k8s.io",
        "resource": "leases",
        "namespace": "default",
        "name": "spared",
    }
    opted = {"quarterdeck.dev/lease-proves-life": "true"}
    board.create("spared", annotations=opted)
    board.say("spared", conditions(), relatedObjects=[lease])
    board.create("asked")
    board.say("asked", conditions(), relatedObjects=[lease])
    with board.renewed("spared"):
        process = checker(*QUICK)
        board.wait_given_up("asked")
        assert board.marks("spared") == [""] * 4
        assert {request.name for request in board.writes()} == {"asked"}
        alive = 'cluster_operator_last_proven_alive_timestamp_seconds{name="%s"}'
        assert process.metric(alive % "spared") > process.metric(alive % "asked")
    board.wait_given_up("spared")


@pytest.mark.slow
def test_nothing_is_written_in_the_grace_period(board: Board, checker: StartOperator) -> None:
    board.create("dead")
    process = checker("--interval=1s", "--grace=6s")
    started = process.logged("controller started")["timestamp"]
    board.wait_challenged("dead")
    asked = process.logged("operator challenged")["timestamp"]
    since = datetime.fromisoformat(asked) - datetime.fromisoformat(started)
    assert since.total_seconds() > 5


@pytest.mark.slow
def test_a_message_that_the_definition_does_not_let_in_is_told_and_the_others_go_on(
    board: Board, checker: StartOperator, short_messages: None
) -> None:
    """An event says what the server said; nothing is written again and again."""
    board.create("dead")
    process = checker(*QUICK)
    told = eventually(lambda: board.events("dead") or None, "an event")
    assert [event["reason"] for event in told] == ["CannotCheck"]
    assert "may not be more than 40 bytes" in told[0]["note"]
    process.logged("conditions refused by the server")
    assert board.marks("dead") == [""] * 4
    assert len(board.writes()) < 5


def refusals(board: Board) -> list[str]:
    return [request.name for request in board.writes() if request.code >= 400]


@pytest.mark.slow
def test_a_policy_about_one_operator_is_told_there_and_the_others_go_on(
    board: Board, checker: StartOperator, policy: None
) -> None:
    """Whatever code the policy answers with, it says nothing about the rights of the checker."""
    refused = ("policy-invalid", "policy-forbidden", "policy-requestentitytoolarge")
    assert_told_and_the_others_go_on(board, checker, refused, "denied request: hands off")


@pytest.mark.slow
def test_a_webhook_about_one_operator_is_told_there_and_the_others_go_on(
    board: Board, checker: StartOperator, webhook: None
) -> None:
    """Its 404 does not make the operator gone, and its 409 does not make it changed."""
    refused = ("webhook-404", "webhook-409", "webhook-410")
    assert_told_and_the_others_go_on(board, checker, refused, "denied the request: hands off")


def assert_told_and_the_others_go_on(
    board: Board, checker: StartOperator, refused: tuple[str, ...], note: str
) -> None:
    for name in (*refused, "dead"):
        board.create(name)
    process = checker(*QUICK, "--watch-grace-period=2")
    for name in refused:
        told = eventually(lambda: board.events(name), "an event")  # noqa: B023
        assert [event["reason"] for event in told] == ["CannotCheck"]
        assert note in told[0]["note"]
    board.wait_given_up("dead")
    before = len(refusals(board))
    eventually(lambda: len(refusals(board)) >= before + 6, "they are asked for again")
    assert process.get("/readyz")[0] == 200
    assert not process.lines("reconcile failed")
    assert not process.lines("conflict")
    assert all(board.marks(name) == [""] * 4 for name in refused)


@pytest.mark.slow
def test_the_lease_opt_in_works_for_one_that_is_stale_already(
    board: Board, checker: StartOperator
) -> None:
    """Its conditions get back what the operator said, though it never wrote."""
    lease = {"group": "coordination.k8s.io", "resource": "leases"}
    good = lease | {"namespace": "default", "name": "late"}
    board.create("late")
    odd = [good | {"name": "no/name"}, good | {"name": "a" * 300_000}]
    board.say("late", conditions(), relatedObjects=[good, good, *odd])
    process = checker(*QUICK)
    board.wait_given_up("late")
    with board.renewed("late"):
        opted = "quarterdeck.dev/lease-proves-life=true"
        board.plane.kubectl("annotate", "clusteroperator", "late", opted)
        board.wait_fine("late")
        words = [(one["status"], one["message"]) for one in board.said("late")]
        assert words == [(one["status"], one["message"]) for one in conditions()]
        eventually(lambda: process.metric('cluster_operator_stale{name="late"}') == 0, "metric")
    reasons = [event["reason"] for event in board.events("late")]
    assert reasons.count("CannotCheck") == 2, "a Lease name that is no name is told once"
    assert len(process.lines("lease does not count")) == 2


@pytest.mark.slow
def test_an_object_that_has_no_room_for_our_text_is_told_and_left_alone(
    board: Board, checker: StartOperator
) -> None:
    """At etcd's limit of one and a half megabytes the server says 500 or 413, for ever."""
    board.create("full")
    board.fill("full")
    process = checker(*QUICK)
    told = eventually(lambda: board.events("full") or None, "an event")
    assert [event["reason"] for event in told] == ["CannotCheck"]
    process.logged("conditions refused by the server")
    assert not process.lines("reconcile failed")
    assert len(board.writes()) < 5


@pytest.mark.slow
@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.soak)])
def test_many_missing_leases_are_one_line_each(
    board: Board, checker: StartOperator, count: int
) -> None:
    """Each is asked for again at every look, and not told again."""
    lease = {"group": "coordination.k8s.io", "resource": "leases", "namespace": "default"}
    named = [lease | {"name": f"missing-{number}"} for number in range(count)]
    board.create("many", annotations={"quarterdeck.dev/lease-proves-life": "true"})
    board.say("many", conditions(), relatedObjects=named)
    process = checker(*QUICK)
    eventually(lambda: board.marks("many") == ["verdict"] * 4, "it is given up", 200)
    # All were asked for before the challenge, and again before the verdict.
    told = [line["lease"] for line in process.lines("lease does not count")]
    assert sorted(told) == sorted(f"default/{one['name']}" for one in named)


def test_a_dead_operator_is_given_up_and_its_upgradeable_is_kept(
    board: Board, checker: StartOperator
) -> None:
    """By the checker that has asked it, which knows that this condition has no mark."""
    board.create("dead", conditions(Upgradeable="False"))
    checker(*UNHURRIED, "--keep-upgradeable-false")
    kept = {"Upgradeable": ""}
    wanted = [kept.get(kind, "verdict") for kind in TYPES]
    eventually(lambda: board.marks("dead") == wanted, "it is given up but for one condition")
    assert [event["reason"] for event in board.events("dead")] == ["OperatorStale"]
