"""What is killed leaves only empty cgroups, and comes back: a cluster, and a run of these tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.cluster import CHECKOUT, LIMIT, RealCluster, conditions, tied
from tests.e2e.machine import differences, machine

from quarterdeck.localcluster.status import running_status
from quarterdeck.testing.waiting import eventually


@pytest.fixture
def other(homes: Path) -> Iterator[RealCluster]:
    """A cluster beside that of the other tests, which does not run yet."""
    made = RealCluster(homes / "other")
    yield made
    made.quarterdeck("local", "down", "--purge")


def test_a_kill_in_the_middle_of_a_start_leaves_nothing_to_the_next_run(other: RealCluster) -> None:
    before = machine()
    starting = subprocess.Popen(
        [sys.executable, "-m", "quarterdeck", "local", "up", "--real-nodes", "1"],
        cwd=CHECKOUT,
        env=other.variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    eventually(lambda: _kubelet_runs(other), "the kubelet runs", limit=LIMIT)
    supervisor = other.status.supervisor
    assert supervisor.end(signal.SIGKILL, LIMIT)
    starting.wait(LIMIT)
    eventually(lambda: not _processes_of(other), "everything has ended", limit=LIMIT)
    assert differences(before, machine()).keys() <= {"cgroups"}

    other.up("1")
    assert conditions(other.get("node", "node-1"))["Ready"] == "True"
    other.quarterdeck("local", "down")
    assert not differences(before, machine())


def test_after_a_kill_down_removes_what_is_left(other: RealCluster) -> None:
    before = machine()
    other.up("1")
    assert other.status.supervisor.end(signal.SIGKILL, LIMIT)
    other.quarterdeck("local", "down")
    assert not differences(before, machine())
    assert not _processes_of(other)


@pytest.mark.parametrize("everything", [False, True], ids=["the run", "its cluster too"])
def test_a_killed_run_of_these_tests_leaves_nothing_to_the_next(
    tmp_path: Path, everything: bool
) -> None:
    """With a cluster of its own, whose state is in its cache."""
    before = machine()
    cluster = RealCluster(tmp_path / "d" / "real-nodes" / "main")
    nodes = CHECKOUT / "tests/e2e/test_1_nodes.py"
    run = (
        *(sys.executable, "-m", "pytest", "-q", "-o", f"cache_dir={tmp_path}"),
        f"{nodes}::test_both_nodes_are_ready",
    )
    variables = {name: os.environ[name] for name in os.environ if not name.startswith("PYTEST")}
    first = subprocess.Popen(tied(*run), cwd=CHECKOUT, env=variables, stdout=subprocess.DEVNULL)
    eventually(lambda: _kubelet_runs(cluster), "the kubelet runs", limit=LIMIT)
    supervisor = cluster.status.supervisor
    first.kill()
    first.wait()
    if everything:
        assert supervisor.end(signal.SIGKILL, LIMIT)
        eventually(lambda: not _processes_of(cluster), "everything has ended", limit=LIMIT)
    second = subprocess.run(
        run, check=False, cwd=CHECKOUT, env=variables, capture_output=True, text=True
    )
    assert second.returncode == 0, second.stdout + second.stderr
    assert not differences(before, machine())
    assert not _processes_of(cluster)


def _kubelet_runs(cluster: RealCluster) -> bool:
    status = running_status(cluster.layout)
    log = cluster.layout.root / "real-nodes" / "node-1" / "var" / "log" / "kubelet.log"
    return status is not None and log.exists() and log.stat().st_size > 0


def _processes_of(cluster: RealCluster) -> list[str]:
    """The processes whose command names the cluster's state directory."""
    state = os.fsencode(cluster.layout.root)
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if state in command:
            found.append(command.decode(errors="replace"))
    return found
