"""The commands of docs/log-level.md, in their order, on a cluster of their own.

The eight steps of the workflow and the three stories, against what the operator's own Deployment
really writes, read with `kubectl logs`.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.testing.operator_process import eventually

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing")

TEXT = (Path(__file__).parents[3] / "docs" / "log-level.md").read_text()
BLOCKS = re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [line[2:] for block in BLOCKS for line in block.splitlines() if line.startswith("$ ")]
LOGS = "kubectl logs "
GET = "quarterdeck log-level get"
SET = "quarterdeck log-level set "

DEPLOYMENT = "kubectl get deployment sample-operator"

EXPECTED: list[tuple[str, list[str]]] = [
    ("quarterdeck local up --payload", ["is ready", "log-level set Debug"]),
    ("export KUBECONFIG=", []),
    ("kubectl patch clusterversion version", ["patched"]),
    ("kubectl wait clusterversion", ["condition met"]),
    ("kubectl scale deployment", ["scaled"]),
    (DEPLOYMENT, ["1/1"]),
    (LOGS, ["created", "payload ended", "leading", "ReleaseApplied"]),
    (GET, ["Normal   2           yes"]),
    ("kubectl patch clusterversionoperator", ["patched"]),
    (LOGS, ["after=Debug", "manifest skipped", "spec.overrides says unmanaged", "v=4"]),
    (SET + "Trace", ["Trace (verbosity 6) is in force; it was Debug"]),
    ("kubectl describe", ["changed from Normal to Debug", "changed from Debug to Trace"]),
    ("kubectl patch clusterversion version --type=json", ["patched"]),
    (LOGS, ["method=PATCH", "deployments/sample-operator", "ms=", "v=6", "after=Trace"]),
    (DEPLOYMENT, ["2/2"]),
    (LOGS, ["v=6"]),
    (SET + "Normal", ["Normal (verbosity 2) is in force; it was Trace"]),
    ("kubectl get clusterversionoperator cluster", ["Normal"]),
    (SET + "Trace --for 30m", ["is in force until", "then Normal; it was Normal"]),
    (GET, ["Trace   6           yes", "Z   Normal"]),
    ("kubectl get clusterversionoperator cluster --output", ["Trace until", "then Normal"]),
    (SET + "Normal", ["Normal (verbosity 2) is in force"]),
    (GET, ['"inForce": true', '"level": "Normal"']),
    ("quarterdeck local down --purge", []),
    ("quarterdeck local up --payload --cvo-log-level Debug", ["is ready"]),
    (GET, ["Debug   4           yes"]),
    ("kubectl patch featuregate", ["patched"]),
    (SET + "Trace  # fails", ["is off", "turn it on with: kubectl patch"]),
    ("kubectl patch featuregate", ["patched"]),
    ("quarterdeck local down --purge", []),
]
"""How each command of the document begins, and what its output has to have in it."""

Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell(tmp_path: Path, control_plane_binaries: Binaries) -> Iterator[Shell]:
    """A newcomer's shell: `quarterdeck` and `kubectl` on the path, a home without a cluster."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, path in control_plane_binaries.paths.items():
        (programs / name).symlink_to(path)
    home = tmp_path / "home"
    home.mkdir()
    places = [str(Path(sys.executable).parent), str(programs), os.environ["PATH"]]
    environment = {name: value for name, value in os.environ.items() if name != "XDG_STATE_HOME"}
    environment |= {
        "PATH": os.pathsep.join(places),
        "HOME": str(home),
        "KUBEBUILDER_ASSETS": str(programs),
    }

    def run(command: str) -> "subprocess.CompletedProcess[str]":
        if command.startswith("export KUBECONFIG="):
            environment["KUBECONFIG"] = command.partition("=")[2].replace("~", str(home))
        return subprocess.run(
            ["sh", "-c", command],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    yield run
    run("quarterdeck local down --purge")


def test_every_command_is_expected_here() -> None:
    assert len(COMMANDS) == len(EXPECTED)
    for command, (beginning, _) in zip(COMMANDS, EXPECTED, strict=True):
        assert command.startswith(beginning)


@pytest.mark.slow
def test_the_workflow_and_the_stories_go_as_they_are_told(shell: Shell) -> None:
    """A level set with kubectl is in force a moment later: what is read is read until it is."""
    for command, (_, wanted) in zip(COMMANDS, EXPECTED, strict=True):
        fails = "# fails" in command
        done = shell(command)

        def seen(command: str = command, wanted: list[str] = wanted) -> str | None:
            again = shell(command)
            text = again.stdout + again.stderr
            return text if all(words in text for words in wanted) else None

        reads = re.search(r"kubectl (logs|get|describe)|log-level get|# fails", command)
        if reads and not all(words in done.stdout + done.stderr for words in wanted):
            eventually(seen, f"{wanted} in the output of: {command}")
        elif not reads:
            assert [words for words in wanted if words not in done.stdout + done.stderr] == []
            assert done.returncode == 0, f"{command}: {done.stderr}"
        if fails:
            assert shell(command).returncode == 2


def test_the_options_of_make_up_are_those_of_the_document() -> None:
    """`make up LOG_LEVEL=Debug` asks for the same as the command that the document names."""
    make = ["make", "--dry-run", "up", "LOG_LEVEL=Debug"]
    root = Path(__file__).parents[3]
    shown = subprocess.run(make, cwd=root, capture_output=True, text=True, check=True).stdout
    words = " ".join(shown.replace("\\\n", " ").split())
    assert "local up --foreground" in words
    assert "--cvo-log-level Debug" in words
