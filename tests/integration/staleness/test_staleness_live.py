"""The checker on a real API server, with intervals of seconds."""

from collections.abc import Callable

import pytest
from tests.integration.staleness.board import Board, conditions

from quarterdeck.testing.operator_process import OperatorProcess, eventually

Checkers = Callable[..., OperatorProcess]
QUICK = ("--interval=2s", "--grace=0s")


@pytest.mark.slow
def test_a_dead_operator_is_asked_then_given_up_and_recovers_by_itself(
    board: Board, checker: Checkers
) -> None:
    """Both messages, all four conditions, an event for each of the two turns, and metrics."""
    board.create("dead", [*conditions("fine"), {**conditions()[0], "type": "Disabled"}])
    process = checker(*QUICK)
    board.wait_challenged("dead")
    assert process.metric('cluster_operator_stale{name="dead"}') == 0
    board.wait_given_up("dead")
    said = {one["type"]: one for one in board.said("dead")}
    assert said["Available"]["message"] == (
        "Operator has not updated this condition for more than 4 seconds, "
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
        board.delete("dead")
        eventually(lambda: alive not in process.get("/metrics")[1], "its metrics are gone")
