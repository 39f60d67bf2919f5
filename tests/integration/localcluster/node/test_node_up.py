"""`quarterdeck local up` with the node this-machine: both nodes, the sample, and refusals."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.pods import READ_ONLY, host_name, needs_bubblewrap

from quarterdeck.localcluster.binaries import Binaries

pytestmark = needs_bubblewrap

PROGRAM = Path(sys.executable).with_name("quarterdeck")
LIMIT = 240


ALONE = """
kind: Pod
metadata: {name: alone}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: quarterdeck, command: [sleep, "1000"]}]
"""


class Local:
    """`quarterdeck local` with a state directory of its own, on programs that are there."""

    def __init__(self, state: Path, binaries: Binaries) -> None:
        self.state = state
        programs = state.with_name("programs")
        programs.mkdir()
        for name, path in binaries.paths.items():
            (programs / name).symlink_to(path)
        self.environment = os.environ | {"KUBEBUILDER_ASSETS": str(programs)}

    def run(self, command: str, *options: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [PROGRAM, "local", command, "--state-dir", self.state, *options],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )


@pytest.fixture
def local(tmp_path: Path, control_plane_binaries: Binaries) -> Iterator[Local]:
    """Nothing runs yet, and nothing runs afterwards."""
    local = Local(tmp_path / "state", control_plane_binaries)
    yield local
    local.run("down")


def check_exec(local: Local) -> None:
    """`local exec` runs a command in a pod, with its exit code; what cannot be says why."""
    space = "--namespace=quarterdeck-sample"
    pod = local.run("kubectl", "get", "pods", space, "--output=name").stdout.split()[0]
    name = pod.removeprefix("pod/")
    script = "hostname; echo $POD_NAMESPACE; grep CapEff /proc/self/status; touch /tmp/x; exit 7"
    inside = local.run("exec", space, name, "--", "sh", "-c", script)
    assert inside.returncode == 7
    assert inside.stdout.splitlines() == [
        host_name(name),
        "quarterdeck-sample",
        "CapEff:\t0000000000000000",
    ]
    assert READ_ONLY in inside.stderr
    for options, why in (
        ((space, "nobody"), '"nobody" not found'),
        ((space, "--container=nope", name), "has no container nope, only operator"),
    ):
        refused = local.run("exec", *options, "--", "true")
        assert refused.returncode == 2
        assert why in refused.stderr


def check_static_pods(local: Local, directory: Path) -> None:
    """The pod of the directory runs, and `up` with another directory is refused."""
    pod = ("pod/alone-this-machine", "--for=condition=Ready", "--timeout=90s")
    ready = local.run("kubectl", "wait", *pod)
    assert ready.returncode == 0, ready.stderr
    assert local.run("up", "--static-pods", str(directory)).returncode == 0
    refused = local.run("up", "--static-pods", str(directory.parent))
    assert refused.returncode == 2
    assert f"takes static pods from {directory}; to take them from" in refused.stderr
    missing = local.run("up", "--static-pods", str(directory / "none"))
    assert "does not exist" in missing.stderr


def test_up_with_the_sample_shows_its_log_and_finds_it_again(local: Local, tmp_path: Path) -> None:
    """Two nodes, two replicas; after `down` and `up` they run again, each one restart older.

    A directory of static pods is used while it is named, and no longer.
    """
    static = tmp_path / "static"
    static.mkdir()
    (static / "alone.yaml").write_text(ALONE)
    empty = local.run("up", "--static-pods", str(static))
    assert empty.returncode == 0, empty.stderr
    assert "The sample operator" not in empty.stdout
    # On the cluster that runs: the sample is brought, and told of.
    first = local.run("up", "--sample", "--static-pods", str(static))
    assert first.returncode == 0, first.stderr
    assert "is already running at" in first.stdout
    assert "leading" in first.stdout
    assert "standing by" in first.stdout
    nodes = local.run("kubectl", "get", "nodes", "--output=name").stdout.split()
    assert nodes == ["node/simulated", "node/this-machine"]
    check_exec(local)
    check_static_pods(local, static)
    assert local.run("down").returncode == 0
    assert local.run("up").returncode == 0
    # What the pods said last is true again only when the node's agent has looked at them.
    restarted = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1"
    for condition in (restarted, "--for=condition=Ready"):
        pods = ("pods", "--all", "--namespace=quarterdeck-sample", "--timeout=90s")
        again = local.run("kubectl", "wait", condition, *pods)
        assert again.returncode == 0, again.stderr
    ended = ("pod/alone-this-machine", "--for=delete", "--timeout=90s")
    assert local.run("kubectl", "wait", *ended).returncode == 0
    check_what_is_missing_is_brought(local, static)


def check_what_is_missing_is_brought(local: Local, static: Path) -> None:
    """`up` on a cluster that runs: what is asked for and not there is brought, and told of."""
    wanted = ("--payload", "--staleness", "--static-pods", str(static))
    for _ in ("brought", "there already"):
        brought = local.run("up", *wanted)
        assert brought.returncode == 0, brought.stderr
        assert "is already running at" in brought.stdout
        assert "The staleness checker, a static pod" in brought.stdout
        assert "The sample operator" in brought.stdout
        assert "how to update it" in brought.stdout
    check_static_pods(local, static)
    shown = local.run("kubectl", "get", "clusterversion,pods", "--all-namespaces")
    assert "version   0.1.0" in shown.stdout
    assert "staleness-this-machine" in shown.stdout


def test_without_bubblewrap_up_says_so_in_one_line(local: Local, tmp_path: Path) -> None:
    local.environment["PATH"] = str(tmp_path)
    refused = local.run("up")
    assert refused.returncode == 2
    (line,) = refused.stderr.splitlines()
    assert "bubblewrap is missing; install it with: " in line
    assert line.endswith("sudo apt-get install proot")
