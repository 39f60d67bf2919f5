"""A checker whose API server answers reads and refuses writes: all of them, some, or its own."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from tests.integration.operators.staleness.board import USER, Board, conditions
from tests.integration.operators.staleness.full_storage import no_space

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.fault_proxy import Answer, Delay, Fault, FaultProxy
from quarterdeck.testing.operator_process import OperatorProcess, OwnOperators, StartOperator
from quarterdeck.testing.waiting import eventually

GRACE = 6.0


@pytest.fixture
def start(plane: ControlPlane, own_operators: OwnOperators) -> StartOperator:
    return own_operators(plane, "staleness")


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[FaultProxy]:
    with FaultProxy(plane.kubeconfig_for(USER)) as made:
        yield made


def verdicts(process: OperatorProcess) -> dict[str, float]:
    """When the process wrote which verdict."""
    return {
        line["operator"]: datetime.fromisoformat(line["timestamp"]).timestamp()
        for line in process.lines("verdict written")
    }


def challenged(board: Board, start: StartOperator, *names: str) -> None:
    """Have operators challenged by a checker that is gone then."""
    for name in names:
        board.create(name)
    first = start("--interval=1s", "--grace=0s")
    for name in names:
        board.wait_challenged(name)
    first.kill()


@pytest.mark.slow
def test_no_verdict_comes_before_a_live_operator_could_write_again(
    plane: ControlPlane, start: StartOperator
) -> None:
    """etcd has no space for longer than the interval and the grace period, while challenges stand.

    A dead operator is given up all the same, a grace period after there is space again.
    """
    board = Board(plane)
    challenged(board, start, "live", "dead")
    process = start("--interval=3s", f"--grace={GRACE:g}s", "--watch-grace-period=6")
    process.logged("caches synced")
    with no_space(plane):
        with pytest.raises(AssertionError, match="space exceeded"):
            board.say("live", conditions())
        eventually(lambda: process.get("/readyz")[0] == 503, "it is not ready", 90)
        assert "space exceeded" in process.get("/readyz")[1]
        time.sleep(GRACE)  # It is the time that matters.
    again = time.time()
    # The operator needs some seconds longer than the checker.
    while time.time() < again + GRACE / 2:
        assert board.marks("live") == ["checking"] * 4
        time.sleep(0.2)
    board.say("live", conditions())
    board.wait_given_up("dead")
    process.logged("verdict written")
    assert verdicts(process)["dead"] - again > GRACE - 1
    assert "live" not in verdicts(process)
    eventually(lambda: process.get("/readyz")[0] == 200, "it is ready again")


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Answer(403), id="it may not write its own entry"),
        pytest.param(Answer(500), id="the storage of its own entry alone is broken"),
        pytest.param(Delay(4.0), id="the server is slow", marks=pytest.mark.soak),
    ],
)
def test_a_dead_operator_does_not_hide_behind_a_server_that_operators_can_write_to(
    plane: ControlPlane, start: StartOperator, proxy: FaultProxy, tmp_path: Path, fault: Fault
) -> None:
    board = Board(plane)
    challenged(board, start, "dead")
    proxy.inject(fault, verb="patch", resource="configmaps", times=None)
    if isinstance(fault, Delay):
        proxy.inject(fault, verb="get", resource="clusteroperators", times=None)
    kubeconfig = proxy.write_kubeconfig(tmp_path / "proxied")
    process = start("--interval=4s", f"--grace={GRACE:g}s", f"--kubeconfig={kubeconfig}")
    eventually(lambda: board.marks("dead") == ["verdict"] * 4, "it is given up", 90)
    process.logged("verdict written")
    assert list(verdicts(process)) == ["dead"]


@pytest.mark.slow
def test_a_server_that_is_back_and_refuses_our_own_entry_gets_a_grace_period(
    plane: ControlPlane, start: StartOperator, proxy: FaultProxy, tmp_path: Path
) -> None:
    """All writes were refused for longer than the interval, while a challenge stood."""
    board = Board(plane)
    challenged(board, start, "asked")
    proxy.inject(Answer(500), verb="patch", times=None)
    kubeconfig = proxy.write_kubeconfig(tmp_path / "proxied")
    process = start("--interval=3s", f"--grace={GRACE:g}s", f"--kubeconfig={kubeconfig}")
    process.logged("caches synced")
    # The server has decided, against the verdict.
    written = "clusteroperators/status"
    eventually(lambda: proxy.count(verb="patch", resource=written), "a verdict is tried", 90)
    proxy.clear()
    proxy.inject(Answer(403), verb="patch", resource="configmaps", times=None)
    again = time.time()
    eventually(lambda: board.marks("asked") == ["verdict"] * 4, "it is given up", 90)
    process.logged("verdict written")
    assert verdicts(process)["asked"] - again > GRACE - 1


@pytest.mark.soak
def test_a_dead_operator_does_not_hide_behind_a_server_that_fails_now_and_then(
    plane: ControlPlane, start: StartOperator, proxy: FaultProxy, tmp_path: Path
) -> None:
    """Of each four writes, three fail: never is there a whole grace period without a failure."""
    board = Board(plane)
    challenged(board, start, "dead")
    kubeconfig = proxy.write_kubeconfig(tmp_path / "proxied")
    process = start("--interval=3s", "--grace=10s", f"--kubeconfig={kubeconfig}")
    failed = 0

    def given_up() -> bool:
        nonlocal failed
        asked = proxy.count(verb="patch", resource="configmaps")
        while failed < asked * 3 // 4:
            proxy.inject(Answer(500), verb="patch", resource="configmaps")
            failed += 1
        return board.marks("dead") == ["verdict"] * 4

    eventually(given_up, "it is given up", 240)
    assert failed >= 6
    process.logged("verdict written")
    assert list(verdicts(process)) == ["dead"]


@pytest.mark.slow
def test_a_checker_writes_about_itself_only_shortly_before_a_verdict(
    plane: ControlPlane, start: StartOperator, proxy: FaultProxy, tmp_path: Path
) -> None:
    """Not for an operator that is not challenged, nor for one that has long to answer."""
    board = Board(plane)
    challenged(board, start, "asked")
    kubeconfig = proxy.write_kubeconfig(tmp_path / "proxied")
    process = start("--interval=1h", "--grace=1s", f"--kubeconfig={kubeconfig}")
    process.logged("caches synced")
    eventually(lambda: proxy.count(verb="patch", resource="configmaps"), "its settings")
    proxy.forget()
    time.sleep(6)  # Three pulses.
    assert [it for it in proxy.seen if it.verb != "watch"] == []
