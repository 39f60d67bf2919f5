"""`explain` and `operators` say what the checkers say about themselves."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.operators.staleness.board import USER, Board, conditions

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.status.staleness_marks import verdict_message
from quarterdeck.testing.audit import writes_by
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

CONFIG_MAP = ("configmap/quarterdeck-staleness", "--namespace=kube-system")


def quarterdeck(
    board: Board, *words: str, kubeconfig: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    access = f"--kubeconfig={kubeconfig or board.plane.kubeconfig}"
    command = [sys.executable, "-m", "quarterdeck", *words, access]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def explained(board: Board, name: str) -> Object:
    told = quarterdeck(board, "staleness", "explain", name, "--output=json")
    assert told.stdout, told.stderr
    return json.loads(told.stdout)  # type: ignore[no-any-return]


def kept_upgradeable() -> list[Object]:
    """Given up by a checker that keeps an Upgradeable=False, which was set after that."""
    return [
        one | {"lastTransitionTime": "2026-02-02T00:00:00Z"}
        if one["type"] == "Upgradeable"
        else one
        | {"status": "Unknown", "message": verdict_message(one["message"], one["status"], 1200)}
        for one in conditions(Upgradeable="False")
    ]


def wait_published(board: Board, wanted: int) -> None:
    def known() -> bool:
        found = explained(board, "fine")["checkers"]
        return len([one for one in found if one["counts"] and not one["remark"]]) == wanted

    eventually(known, f"{wanted} checkers have published")


def published_so_far(board: Board) -> int:
    """How often checkers have published on this control plane, which other tests use too."""
    written = writes_by(board.plane.audit_log, USER)
    return sum(request.resource == "configmaps" for request in written)


@pytest.mark.slow
def test_the_settings_are_those_of_the_checkers_that_run(
    board: Board, checker: StartOperator
) -> None:
    """First none, then one, then one that differs; a pod that claims to be one counts nothing."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "staleness-somewhere",
            "namespace": "kube-system",
            "labels": {"app": "quarterdeck-staleness"},
        },
        "spec": {
            "containers": [
                {
                    "name": "checker",
                    "image": "example.test/quarterdeck-elsewhere",
                    "args": ["run", "--operator=staleness", "--interval=9s"],
                }
            ]
        },
    }
    before = published_so_far(board)
    board.create("fine")
    board.plane.kubectl("apply", "--filename=-", input=json.dumps(pod))
    try:
        none = explained(board, "fine")
    finally:
        board.plane.kubectl(
            *("delete", "pod", "staleness-somewhere", "--namespace=kube-system"),
            *("--grace-period=0", "--force"),
        )
    assert none["intervalSeconds"] == 600
    assert none["intervalFrom"].startswith("the default; no checker has published")
    checker("--interval=90s", "--keep-upgradeable-false")
    wait_published(board, 1)
    one = explained(board, "fine")
    assert (one["intervalSeconds"], one["keepUpgradeableFalse"]) == (90, True)
    assert one["intervalFrom"].startswith("published by checker ")
    checker("--interval=10m")
    wait_published(board, 2)
    two = explained(board, "fine")
    assert (two["intervalSeconds"], two["keepUpgradeableFalse"]) == (90, False)
    assert two["intervalFrom"].startswith("the checkers differ")
    text = quarterdeck(board, "staleness", "explain", "fine").stdout
    assert "KEEPS UPGRADEABLE=FALSE" in text
    said = published_so_far(board) - before
    assert said < 12  # each at its start, once more when it sees, then once a minute


@pytest.mark.slow
def test_who_pretends_to_be_a_checker_is_shown_and_does_not_count(
    board: Board, checker: StartOperator
) -> None:
    """Also what would end `explain`, or talk to the terminal."""
    board.create("fine")
    checker("--interval=90s")
    wait_published(board, 1)
    forged = {
        "data": {
            "aaa": '{"intervalSeconds": 1, "keepUpgradeableFalse": true, '
            '"at": "2026-01-01T00:00:00Z"}',
            "bbb": "\x1b]52;c;aGk=\x07\n" * 10,
            "ccc": "[" * 10_000,
            "ddd": '{"intervalSeconds": 1, "keepUpgradeableFalse": true, '
            '"at": "9999-12-31T23:59:59Z", "trouble": "\\u001b[2J"}',
        }
    }
    patch = f"--patch={json.dumps(forged)}"
    board.plane.kubectl("patch", *CONFIG_MAP, "--type=merge", patch)
    data = explained(board, "fine")
    assert data["intervalSeconds"] == 90
    assert [one["counts"] for one in data["checkers"]] == [True, False, False, False, False]
    told = quarterdeck(board, "staleness", "explain", "fine")
    assert told.returncode == 0, told.stderr
    assert "\x1b" not in told.stdout
    assert "not written by a checker" in told.stdout


@pytest.mark.slow
def test_whether_an_operator_is_stale_is_what_the_checkers_say(
    board: Board, checker: StartOperator
) -> None:
    """An Upgradeable=False beside verdicts: kept by the checker, or a sign of life."""
    board.create("fine")
    board.create("forbids", kept_upgradeable())

    def judged() -> tuple[str, str]:
        told = quarterdeck(board, "operators", "forbids", "--output=json")
        text = quarterdeck(board, "operators").stdout
        return json.loads(told.stdout)["state"], text.rpartition("\n\n")[2]

    state, how = judged()
    assert state != "stale"
    assert how.startswith("stale or not was judged by the times of the conditions (the default;")
    keeps = checker("--interval=10m", "--keep-upgradeable-false")
    wait_published(board, 1)
    state, how = judged()
    assert state == "stale"
    assert how.startswith("stale or not was judged as the checkers keep an Upgradeable=False")
    assert explained(board, "forbids")["state"] == "stale"
    keeps.kill()


@pytest.mark.slow
def test_who_may_not_read_what_checkers_say_is_told_so(
    board: Board, control_plane: ControlPlane
) -> None:
    board.create("fine")
    looks = ("--verb=get,list", "--resource=clusteroperators.config.openshift.io")
    board.plane.kubectl("create", "clusterrole", "looks", *looks)
    binding = ("clusterrolebinding", "looks", "--clusterrole=looks", "--user=reader")
    board.plane.kubectl("create", *binding)
    told = quarterdeck(
        board, "staleness", "explain", "fine", kubeconfig=control_plane.kubeconfig_for("reader")
    )
    assert told.returncode == 0, told.stderr
    assert "10m (the default; the right to get ConfigMap kube-system/" in told.stdout
