"""`quarterdeck operators` against a real API server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.objects import cluster_operator

from quarterdeck.localcluster import ControlPlane
from quarterdeck.status.staleness_marks import verdict_message
from quarterdeck.testing.fault_proxy import Answer, FaultProxy
from quarterdeck.testing.waiting import eventually

COLLECTION = "/apis/config.openshift.io/v1/clusteroperators"
LIMIT = 60
WELL = {"Available": "True", "Progressing": "False", "Degraded": "False", "Upgradeable": "True"}

Report = Callable[..., None]


@pytest.fixture
def report(control_plane: ControlPlane, crds: list[str], clean_cluster: None) -> Report:
    """Writes a ClusterOperator with these statuses, or these conditions."""

    def write(name: str, message: str = "m", **statuses: str) -> None:
        conditions = [condition(type_, status, message) for type_, status in statuses.items()]
        send(control_plane, name, conditions)

    return write


def condition(type_: str, status: str, message: str) -> dict[str, str]:
    return {
        "type": type_,
        "status": status,
        "reason": "Because",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def send(control_plane: ControlPlane, name: str, conditions: list[dict[str, str]]) -> None:
    requests = control_plane.requests()
    requests.apply(COLLECTION, cluster_operator(name))
    answer = requests.send(
        "PATCH",
        f"{COLLECTION}/{name}/status",
        json.dumps({"status": {"conditions": conditions}}).encode(),
        "application/merge-patch+json",
    )
    assert answer.ok, answer.body


def operators(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "quarterdeck", "operators", "--kubeconfig", kubeconfig, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )


def test_the_worst_are_shown_first_and_decide_the_exit_code(
    control_plane: ControlPlane, kubeconfig: Path, report: Report
) -> None:
    assert operators(kubeconfig).stdout == "no ClusterOperators\n"
    report("a-well", **WELL)
    report("b-disabled", **WELL, Disabled="True")
    report("c-progressing", **WELL | {"Progressing": "True"})
    all_well = operators(kubeconfig)
    names = [line.split()[0] for line in all_well.stdout.splitlines()]
    assert names == ["NAME", "c-progressing", "a-well", "b-disabled"]
    assert all_well.returncode == 0, all_well.stderr

    report("d-ill", **WELL | {"Degraded": "True"})
    gone = [condition(type_, "Unknown", verdict_message("m", s, 1200)) for type_, s in WELL.items()]
    send(control_plane, "e-silent", gone)
    some_ill = operators(kubeconfig)
    lines = some_ill.stdout.splitlines()
    assert lines[1].startswith("e-silent (stale) ")
    assert lines[2].startswith("d-ill ")
    assert some_ill.returncode == 1
    assert operators(kubeconfig, "a-well").returncode == 0
    assert operators(kubeconfig, "e-silent").returncode == 1


def test_programs_get_json_and_yaml(kubeconfig: Path, report: Report) -> None:
    report("one", "two\nlines", **WELL)
    as_json = json.loads(operators(kubeconfig, "-o", "json").stdout)
    as_yaml = yaml.safe_load(operators(kubeconfig, "-o", "yaml").stdout)
    assert as_json == as_yaml
    assert [(one["name"], one["state"]) for one in as_json] == [("one", "well")]
    assert as_json[0]["conditions"][0]["message"] == "two\nlines"
    assert json.loads(operators(kubeconfig, "one", "-o", "json").stdout) == as_json[0]


def test_one_in_detail(kubeconfig: Path, report: Report) -> None:
    report("one", "two\nlines", **WELL | {"Degraded": "True"})
    found = operators(kubeconfig, "one")
    assert found.returncode == 1
    assert "state     degraded\n" in found.stdout
    assert "  two\n  lines\n" in found.stdout


def test_a_name_that_is_not_there_is_told_with_those_that_are(
    kubeconfig: Path, report: Report
) -> None:
    report("one", **WELL)
    found = operators(kubeconfig, "two")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "error: there is no ClusterOperator 'two'; there are: one\n"


def test_a_cluster_without_the_resource_type_gets_one_clear_line(
    fault_proxy: FaultProxy, tmp_path: Path
) -> None:
    fault_proxy.inject(Answer(404, reason="NotFound"), resource="clusteroperators", times=None)
    through = fault_proxy.write_kubeconfig(tmp_path / "kubeconfig")
    for arguments in ([], ["--watch"], ["sample"]):
        found = operators(through, *arguments)
        assert (found.returncode, found.stdout) == (2, "")
        assert len(found.stderr.splitlines()) == 1
        assert "clusteroperators.config.openshift.io" in found.stderr


@pytest.fixture
def watching(kubeconfig: Path, tmp_path: Path) -> Iterator[Callable[..., "Watching"]]:
    """Starts `operators --watch`; ended after the test."""
    started: list[Watching] = []

    def start(*arguments: str) -> Watching:
        started.append(Watching(kubeconfig, tmp_path / f"{len(started)}.txt", arguments))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


class Watching:
    """A running `operators --watch`."""

    def __init__(self, kubeconfig: Path, output: Path, arguments: tuple[str, ...]) -> None:
        self._output = output
        with output.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "quarterdeck", "operators", "--watch", *arguments],
                env=os.environ | {"KUBECONFIG": str(kubeconfig)},
                stdout=stream,
            )

    def shows(self, wanted: Callable[[str], Any]) -> None:
        eventually(lambda: bool(wanted(self._output.read_text())), "the change is shown")

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(LIMIT)


def test_a_watch_shows_each_change_until_it_is_interrupted(
    report: Report, watching: Callable[..., Watching]
) -> None:
    report("one", **WELL)
    every, single = watching(), watching("one", "-o", "yaml")
    every.shows(lambda text: "one " in text)
    single.shows(lambda text: "state: well" in text)
    report("two", **WELL | {"Available": "False"})
    every.shows(lambda text: "two " in text.split("\n\n")[-1])
    report("one", **WELL | {"Degraded": "True"})
    single.shows(lambda text: "state: degraded" in text.split("---\n")[-1])
    assert every.interrupt() == 0
    assert single.interrupt() == 0
