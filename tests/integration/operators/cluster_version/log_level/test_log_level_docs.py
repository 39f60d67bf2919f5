"""The commands of docs/log-level.md, in their order, on a cluster of their own.

The eight steps of the workflow and the three stories, against what the operator's own Deployment
really writes, read with `kubectl logs`.
"""

import re
import subprocess

import pytest
from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS

from quarterdeck.testing.waiting import eventually

pytestmark = needs_bubblewrap

COMMANDS = [command for command, _ in commands((DOCS / "log-level.md").read_text())]
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


def test_every_command_is_expected_here() -> None:
    assert len(COMMANDS) == len(EXPECTED)
    for command, (beginning, _) in zip(COMMANDS, EXPECTED, strict=True):
        assert command.startswith(beginning)


@pytest.mark.slow
def test_the_workflow_and_the_stories_go_as_they_are_told(newcomer: Shell) -> None:
    """A level set with kubectl is in force a moment later: what is read is read until it is."""
    for command, (_, wanted) in zip(COMMANDS, EXPECTED, strict=True):
        fails = "# fails" in command
        done = newcomer(command)

        def seen(command: str = command, wanted: list[str] = wanted) -> str | None:
            again = newcomer(command)
            text = again.stdout + again.stderr
            return text if all(words in text for words in wanted) else None

        reads = re.search(r"kubectl (logs|get|describe)|log-level get|# fails", command)
        if reads and not all(words in done.stdout + done.stderr for words in wanted):
            eventually(seen, f"{wanted} in the output of: {command}")
        elif not reads:
            assert [words for words in wanted if words not in done.stdout + done.stderr] == []
            assert done.returncode == 0, f"{command}: {done.stderr}"
        if fails:
            assert newcomer(command).returncode == 2


def test_the_options_of_make_up_are_those_of_the_document() -> None:
    """`make up LOG_LEVEL=Debug` asks for the same as the command that the document names."""
    make = ["make", "--dry-run", "up", "LOG_LEVEL=Debug"]
    shown = subprocess.run(make, cwd=DOCS.parent, capture_output=True, text=True, check=True).stdout
    words = " ".join(shown.replace("\\\n", " ").split())
    assert "local up --foreground" in words
    assert "--cvo-log-level Debug" in words
