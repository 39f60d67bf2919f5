"""A checker whose API server goes away, or which may no longer see or write."""

import time
from datetime import datetime
from pathlib import Path

import pytest
from tests.integration.operators.staleness.board import RBAC, USER, Board, conditions

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.fault_proxy import FaultProxy
from quarterdeck.testing.operator_process import OperatorProcess, OwnOperators, StartOperator
from quarterdeck.testing.waiting import eventually, until

SOON = "--watch-grace-period=5"
"""Seconds until a checker that cannot do its work is not ready; 30 unless it is told otherwise."""
SELDOM = ("--interval=10m", "--grace=0s", SOON)


@pytest.fixture
def start(plane: ControlPlane, own_operators: OwnOperators) -> StartOperator:
    return own_operators(plane, "staleness")


def logged_at(process: OperatorProcess, event: str) -> float:
    """When the process logged that for the first time, in seconds."""
    return datetime.fromisoformat(process.logged(event)["timestamp"]).timestamp()


def challenge(board: Board, start: StartOperator, name: str) -> None:
    """Have an operator challenged by a checker that is gone then."""
    first = start("--interval=1s", "--grace=0s")
    board.wait_challenged(name)
    first.kill()


def told_of_blindness(plane: ControlPlane) -> list[str]:
    """The notes of the events that say that a checker cannot watch."""
    path = "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=reason%3DCannotCheck"
    found = plane.requests().send("GET", path).json()["items"]
    about = "clusteroperators.config.openshift.io"
    return [one["note"] for one in found if one["regarding"]["name"] == about]


@pytest.mark.slow
def test_no_verdict_comes_before_a_live_operator_could_reconnect(
    plane: ControlPlane, start: StartOperator
) -> None:
    """The API server is away for longer than the interval while a challenge stands."""
    board = Board(plane)
    board.create("live")
    challenge(board, start, "live")
    process = start("--interval=3s", "--grace=7s")
    process.logged("caches synced")
    plane.kill("kube-apiserver")
    # Two intervals, and the grace period of its start: it is the time that matters.
    time.sleep(7)
    plane.start("kube-apiserver")
    # The operator needs some seconds longer than the checker.
    quiet = time.monotonic() + 3
    while time.monotonic() < quiet:
        assert board.marks("live") == ["checking"] * 4
        time.sleep(0.2)
    board.say("live", conditions())
    eventually(lambda: board.marks("live") == ["checking"] * 4, "it is asked again")
    assert not process.lines("verdict written")
    assert "OperatorStale" not in [event["reason"] for event in board.events("live")]


@pytest.mark.slow
def test_a_checker_that_starts_into_an_outage_waits_for_the_operators_too(
    plane: ControlPlane, start: StartOperator
) -> None:
    """The whole cluster off and on: the grace period begins when the server is reached."""
    board = Board(plane)
    board.create("live")
    challenge(board, start, "live")
    plane.kill("kube-apiserver")
    process = start("--interval=1s", "--grace=3s")
    time.sleep(4)  # longer than the grace period
    plane.start("kube-apiserver")
    # By the checker's own clock, which runs the same on a machine that has other things to do.
    reached = logged_at(process, "caches synced")
    board.wait_given_up("live")
    assert logged_at(process, "verdict written") - reached > 2.9


@pytest.mark.slow
def test_no_verdict_comes_before_a_live_operator_could_reach_a_server_that_hung(
    plane: ControlPlane, start: StartOperator
) -> None:
    """The watch stays open all the time, so only a request shows that nobody answers."""
    board = Board(plane)
    board.create("live")
    challenge(board, start, "live")
    process = start("--interval=8s", "--grace=8s", "--watch-grace-period=6")
    process.logged("caches synced")
    eventually(lambda: process.get("/readyz")[0] == 200, "it is ready")
    plane.pause("kube-apiserver")
    try:
        # Not ready by then: it has stood for longer than the interval and the grace period.
        eventually(lambda: process.get("/readyz")[0] == 503, "it is not ready", 90)
        assert "no answer of the API server for" in process.get("/readyz")[1]
        time.sleep(8)
        looked = process.metric("staleness_checker_last_look_timestamp_seconds")
        assert time.time() - looked > 8
    finally:
        plane.resume("kube-apiserver")
    # The operator needs some seconds longer than the checker.
    quiet = time.monotonic() + 3
    while time.monotonic() < quiet:
        assert board.marks("live") == ["checking"] * 4
        time.sleep(0.2)
    board.say("live", conditions())
    eventually(lambda: process.get("/readyz")[0] == 200, "it is ready again")
    eventually(lambda: board.marks("live") == ["checking"] * 4, "it is asked again")
    assert not process.lines("verdict written")
    assert not process.lines("list or watch failed, will try again"), "its watch was open"


@pytest.mark.slow
def test_a_blind_checker_is_not_ready_and_shows_no_operators(
    plane: ControlPlane, start: StartOperator, tmp_path: Path
) -> None:
    """Its rights are gone and its watch is cut: what it knew is old, and it says so.

    Beside it is one that never had the rights.
    """
    board = Board(plane)
    board.create("known")
    with FaultProxy(plane.kubeconfig_for(USER)) as proxy:
        process = start(*SELDOM, f"--kubeconfig={proxy.write_kubeconfig(tmp_path / 'proxied')}")
        eventually(lambda: process.get("/readyz")[0] == 200, "it is ready")
        eventually(lambda: 'name="known"' in process.get("/metrics")[1], "it shows what it sees")
        plane.kubectl("delete", "clusterrolebinding", "quarterdeck-staleness-static-pod")
        may_list = ("auth", "can-i", "list", "clusteroperators", f"--as={USER}")
        eventually(lambda: plane.kubectl(*may_list, check=False).returncode == 1, "rights are gone")
        proxy.cut_now()
        _blind_until_the_rights_are_back(plane, process, start(*SELDOM))


def _blind_until_the_rights_are_back(
    plane: ControlPlane, process: OperatorProcess, never: OperatorProcess
) -> None:
    eventually(lambda: process.get("/readyz")[0] == 503, "it is not ready", 90)
    assert "could not follow clusteroperators.config.openshift.io" in process.get("/readyz")[1]
    assert 'name="known"' not in process.get("/metrics")[1]
    last = process.metric("staleness_checker_last_look_timestamp_seconds")
    assert time.time() - last > 4
    notes = until(
        lambda: told_of_blindness(plane), lambda seen: len(seen) == 2, "each says what is missing"
    )
    assert all(f'User "{USER}" cannot ' in note for note in notes)
    for one in (process, never):
        assert [note for note in notes if f"{one.pid} cannot watch the cluster operators: " in note]
    said = ("get", "configmap/quarterdeck-staleness", "--namespace=kube-system", "--output=yaml")
    until(lambda: plane.kubectl(*said).stdout.count("cannot watch"), lambda n: n == 2, "their word")
    plane.kubectl("apply", "--server-side", f"--filename={RBAC}")
    for one in (process, never):
        eventually(lambda: one.get("/readyz")[0] == 200, "it is ready again", 90)  # noqa: B023
        eventually(lambda: 'name="known"' in one.get("/metrics")[1], "it sees")  # noqa: B023
    until(lambda: plane.kubectl(*said).stdout.count("cannot watch"), lambda n: n == 0, "their word")


@pytest.mark.slow
def test_a_checker_that_may_not_write_says_so(plane: ControlPlane, start: StartOperator) -> None:
    """By an event on the operator that it cannot ask, and by not being ready."""
    board = Board(plane)
    board.create("dead")
    role = '{"rules": [{"apiGroups": ["config.openshift.io"], "resources": ["clusteroperators"], '
    role += '"verbs": ["get", "list", "watch"]}]}'
    name = "quarterdeck-staleness-static-pod"
    plane.kubectl("patch", "clusterrole", name, "--type=merge", f"--patch={role}")
    process = start("--interval=2s", "--grace=0s", SOON)
    told = eventually(lambda: board.events("dead") or None, "an event")
    assert told[0]["reason"] == "CannotCheck"
    assert "clusteroperators" in told[0]["note"]
    eventually(lambda: process.get("/readyz")[0] == 503, "it is not ready", 90)
    assert "may not patch clusteroperators/status" in process.get("/readyz")[1]
