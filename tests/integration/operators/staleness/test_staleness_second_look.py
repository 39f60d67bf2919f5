"""A checker that stood still before a write looks again, and waits where it has to."""

import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.integration.controller.processes import make_process, running, when
from tests.integration.operators.staleness.board import Board, conditions

from quarterdeck.api.config_v1 import CLUSTER_OPERATORS
from quarterdeck.api.meta import Resource
from quarterdeck.controller import Manager, Operator
from quarterdeck.operators.staleness.controller import setup
from quarterdeck.operators.staleness.settings import Settings
from quarterdeck.status.writers import CHECKER
from quarterdeck.testing.operator_process import OwnOperators, StartOperator
from quarterdeck.testing.waiting import eventually


@pytest.mark.slow
def test_a_checker_stopped_over_the_moment_of_the_verdict_sees_the_answer_first(
    board: Board, checker: StartOperator
) -> None:
    """It wakes with an old view and a verdict that is due: it neither writes nor tries to."""
    board.create("live")
    process = checker("--interval=2s", "--grace=0s")
    board.wait_challenged("live")
    process.send(signal.SIGSTOP)
    board.say("live", conditions())
    time.sleep(3)  # the verdict would have come after two: it is the time that matters
    process.send(signal.SIGCONT)
    board.wait_challenged("live")
    assert [request.code for request in board.writes()] == [200, 200], "two challenges"
    assert not process.lines("verdict written")
    assert board.events("live") == []


def stands(board: Board, name: str) -> bool:
    """Whether a challenge is there, and still is when an answer on its way would have arrived."""
    challenged = ["checking"] * 4
    if board.marks(name) != challenged:
        return False
    time.sleep(1.5)
    return board.marks(name) == challenged


@pytest.mark.slow
def test_no_verdict_comes_when_checker_and_operator_were_frozen_together(
    board: Board, checker: StartOperator, own_operators: OwnOperators
) -> None:
    """All containers of a machine are paused and resumed, and both clocks went on meanwhile."""
    operator = own_operators(board.plane, "sample")()
    board.wait_fine("sample")
    process = checker("--interval=3s", "--grace=8s")
    # The challenge that it cannot answer any more.
    eventually(lambda: board.writes(), "it is asked")
    operator.send(signal.SIGSTOP)
    eventually(lambda: stands(board, "sample"), "a challenge stands")
    process.send(signal.SIGSTOP)
    time.sleep(8)  # the verdict would have come after three: it is the time that matters
    process.send(signal.SIGCONT)
    # The operator is slower to wake.
    quiet = time.monotonic() + 3
    while time.monotonic() < quiet:
        assert board.marks("sample") == ["checking"] * 4
        time.sleep(0.2)
    operator.send(signal.SIGCONT)
    board.wait_fine("sample")
    assert not process.lines("verdict written")
    assert board.events("sample") == []


async def test_a_sleep_of_the_machine_during_the_last_look_begins_the_grace_period(
    board: Board, kubeconfig: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Live operators have slept too, so what was about to be written is thrown away."""
    slept, looks = timedelta(), 0
    looks_before_writes: list[int] = []

    def wall_clock() -> datetime:
        return datetime.now(UTC) + slept

    def start(manager: Manager) -> None:
        look, write = manager.replica_client.get, manager.replica_client.patch

        async def sleep_in_the_first(*what: Any) -> Any:
            nonlocal slept, looks
            found = await look(*what)
            looks += 1
            slept = timedelta(hours=1)
            return found

        async def count_looks(resource: Resource[Any], *what: Any, **how: Any) -> Any:
            if resource.plural == CLUSTER_OPERATORS.plural:
                looks_before_writes.append(looks)
            return await write(resource, *what, **how)

        monkeypatch.setattr(manager.replica_client, "get", sleep_in_the_first)
        monkeypatch.setattr(manager.replica_client, "patch", count_looks)
        setup(manager, Settings(interval=timedelta(seconds=1), grace=timedelta(seconds=1)))

    monkeypatch.setattr("quarterdeck.controller.process.wall_clock", wall_clock)
    board.create("dead")
    one = Operator(
        name="staleness",
        setup=start,
        field_manager=CHECKER,
        lease_namespace=namespace,
        lease_name="staleness",
    )
    async with running(make_process(kubeconfig, [one], namespace)) as task:
        await when(lambda: board.marks("dead") == ["checking"] * 4, task)
    # Not later ones: a verdict is due soon after the challenge.
    assert looks_before_writes[0] == 2, "one before the sleep, one after the grace period"
