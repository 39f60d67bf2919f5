"""`quarterdeck staleness explain` and `probe` against a real API server."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.operators.staleness.board import TYPES, Board, conditions
from tests.objects import cluster_operator

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.status.inspect import NO_DEFINITION
from quarterdeck.status.staleness_marks import checking_message, verdict_message
from quarterdeck.testing.plugin import NewControlPlane

CHECKER = "quarterdeck-staleness"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(control_plane: ControlPlane) -> Run:
    """`quarterdeck staleness ...` as administrator, or with another kubeconfig."""

    def start(*words: str, kubeconfig: Path | None = None) -> "subprocess.CompletedProcess[str]":
        access = f"--kubeconfig={kubeconfig or control_plane.kubeconfig}"
        command = [sys.executable, "-m", "quarterdeck", "staleness", *words, access]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    return start


def marked(kind: str) -> list[Object]:
    """The four conditions as the checker leaves them."""
    if kind == "challenged":
        return [one | {"message": checking_message(one["message"])} for one in conditions()]
    return [
        one
        | {
            "status": "Unknown",
            "message": verdict_message(one["message"], one["status"], 1200),
        }
        for one in conditions()
    ]


def test_explain_shows_a_live_operator_and_when_it_is_asked(board: Board, run: Run) -> None:
    board.create("fine")
    told = run("explain", "fine", "--interval=10m")
    assert told.returncode == 0, told.stderr
    assert "alive" in told.stdout
    assert ": a write by their-operator" in told.stdout
    assert "challenge at 20" in told.stdout
    data = json.loads(run("explain", "fine", "--output=json").stdout)
    assert data["state"] == "alive"
    assert data["next"]["action"] == "challenge"
    assert data["intervalSeconds"] == 600
    assert data["intervalFrom"].startswith("the default")
    (write,) = data["writes"]
    assert (write["manager"], write["provesLife"]) == ("their-operator", True)
    assert write["messages"] == sorted(TYPES)


def test_explain_shows_who_challenged_and_until_when(board: Board, run: Run) -> None:
    board.create("asked")
    board.say("asked", marked("challenged"), manager=CHECKER)
    told = run("explain", "asked", "--interval=10m")
    assert told.returncode == 3, told.stderr
    assert "challenged" in told.stdout
    assert "verdict at 20" in told.stdout
    data = json.loads(run("explain", "asked", "--interval=10m", "--output=json").stdout)
    assert data["challengedAt"] is not None
    assert {one["messageOwner"] for one in data["conditions"]} == {CHECKER}
    assert {one["originalMessage"] for one in data["conditions"]} == {"all is well"}
    due = run("explain", "asked", "--interval=10m", "--output=yaml")
    assert "action: verdict" in due.stdout


def test_explain_shows_a_stale_one(board: Board, run: Run) -> None:
    board.create("gone")
    board.say("gone", marked("given up"), manager=CHECKER)
    told = run("explain", "gone")
    assert told.returncode == 1
    assert "nothing, until the operator writes" in told.stdout


def test_an_operator_that_is_not_there_is_one_line(board: Board, run: Run) -> None:
    for command in ("explain", "probe"):
        told = run(command, "nobody")
        assert told.returncode == 2
        (line,) = told.stderr.splitlines()
        assert '"nobody" not found; quarterdeck operators shows all there are' in line


def test_a_probe_reports_the_time_to_the_answer(board: Board, run: Run) -> None:
    board.create("quick")
    with board.alive("quick"):
        told = run("probe", "quick", "--output=json")
    assert told.returncode == 0, told.stderr
    answer = json.loads(told.stdout)
    assert answer["answered"] is True
    assert 0 <= answer["seconds"] < 30
    assert [one["type"] for one in answer["conditions"]] == list(TYPES)
    assert board.marks("quick") == [""] * 4


def test_a_probe_that_is_not_answered_puts_the_messages_back(board: Board, run: Run) -> None:
    board.create("dead")
    told = run("probe", "dead", "--timeout=1s")
    assert told.returncode == 1
    assert "dead did not answer within 1s; its messages are put back" in told.stdout
    assert board.said("dead") == conditions()


def test_a_probe_that_is_answered_in_part_says_what_is_missing(board: Board, run: Run) -> None:
    board.create("half")
    # It knows of three conditions only.
    with board.alive("half", conditions()[:3], only=TYPES[:3]):
        told = run("probe", "half", "--timeout=3s")
    assert told.returncode == 1
    assert "half answered in part: not Upgradeable within 3s; put back by us" in told.stdout
    assert board.marks("half") == [""] * 4


@pytest.mark.parametrize(
    ("kind", "said"),
    [("challenged", "is challenged already"), ("given up", "is stale: nobody would answer")],
)
def test_a_probe_refuses_what_the_checker_is_at(
    board: Board, run: Run, kind: str, said: str
) -> None:
    board.create("taken")
    board.say("taken", marked(kind), manager=CHECKER)
    before = board.get("taken")
    told = run("probe", "taken")
    assert told.returncode == 3
    assert said in told.stderr
    assert board.get("taken") == before


def test_a_probe_without_rights_says_which_it_needs(
    board: Board, run: Run, control_plane: ControlPlane
) -> None:
    board.create("fine")
    board.plane.kubectl(
        *("create", "clusterrole", "looks", "--verb=get,watch"),
        "--resource=clusteroperators.config.openshift.io",
    )
    board.plane.kubectl(
        "create", "clusterrolebinding", "looks", "--clusterrole=looks", "--user=reader"
    )
    told = run("probe", "fine", kubeconfig=control_plane.kubeconfig_for("reader"))
    assert told.returncode == 2
    assert "and patch of clusteroperators/status" in told.stderr
    assert board.marks("fine") == [""] * 4


PROBE = "quarterdeck-staleness-probe"


def entries(board: Board, name: str) -> list[Object]:
    found: list[Object] = board.get(name)["metadata"]["managedFields"]
    return sorted(found, key=lambda entry: (entry["manager"], entry["operation"]))


def test_a_probe_leaves_nothing_behind(board: Board, run: Run) -> None:
    """Neither a message where there was none, nor its name among the owners, nor a new time."""
    said = conditions()
    del said[0]["message"]
    board.create("dead", said)
    before = entries(board, "dead")
    told = run("probe", "dead", "--timeout=1s")
    assert told.returncode == 1, told.stderr
    assert board.said("dead") == said
    assert entries(board, "dead") == before


def test_a_probe_leaves_an_atomic_list_to_its_owner(
    board: Board, run: Run, atomic_conditions: None
) -> None:
    board.create("dead")
    before = entries(board, "dead")
    assert run("probe", "dead", "--timeout=1s").returncode == 1
    assert board.said("dead") == conditions()
    assert entries(board, "dead") == before


def test_an_operator_that_applies_without_force_may_write_after_a_probe(
    board: Board, run: Run
) -> None:
    """It got a conflict with the probe, for ever."""
    board.create("gives-way", [])

    def applied(message: str) -> int:
        path = "/apis/config.openshift.io/v1/clusteroperators/gives-way/status"
        body = cluster_operator("gives-way") | {"status": {"conditions": conditions(message)}}
        full = json.dumps(body).encode()
        answer = board.plane.requests().send(
            "PATCH", f"{path}?fieldManager=it&force=false", full, "application/apply-patch+yaml"
        )
        return answer.status

    assert applied("fine") == 200
    assert run("probe", "gives-way", "--timeout=1s").returncode == 1
    assert applied("other") == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_probe_that_is_told_to_end_puts_the_messages_back(
    board: Board, control_plane: ControlPlane, number: signal.Signals
) -> None:
    board.create("dead")
    command = [sys.executable, "-m", "quarterdeck", "staleness", "probe", "dead"]
    command += ["--timeout=60s", f"--kubeconfig={control_plane.kubeconfig}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    board.wait_challenged("dead")
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "Traceback" not in told
    assert board.said("dead") == conditions()
    assert PROBE not in [entry["manager"] for entry in entries(board, "dead")]


@pytest.mark.parametrize("name", ["", "a/b", "../x", "Ä"])
@pytest.mark.parametrize("command", ["explain", "probe"])
def test_what_can_be_no_name_is_one_sentence(run: Run, command: str, name: str) -> None:
    told = run(command, name)
    assert told.returncode == 2
    (line,) = told.stderr.splitlines()
    assert "cannot be the name of a ClusterOperator" in line


def test_a_cluster_without_the_resource_type_is_one_sentence(
    run: Run, new_control_plane: NewControlPlane
) -> None:
    plane = new_control_plane(started=False)
    plane.start("etcd", "kube-apiserver")
    for command in ("explain", "probe"):
        told = run(command, "dns", kubeconfig=plane.kubeconfig)
        assert told.returncode == 2
        (line,) = told.stderr.splitlines()
        assert NO_DEFINITION in line
        assert not told.stdout
