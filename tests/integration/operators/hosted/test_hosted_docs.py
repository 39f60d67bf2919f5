"""The commands of docs/hosted.md, in their order, on two clusters of their own."""

from collections.abc import Iterator

import pytest
from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS

from quarterdeck.delivery.options import options_of
from quarterdeck.delivery.registry import installed
from quarterdeck.testing.waiting import until

TEXT = (DOCS / "hosted.md").read_text()
GET = "quarterdeck log-level get --hosted clusters/harbour"
SET = "quarterdeck log-level set Debug --hosted clusters/harbour"
PATCH = "kubectl patch hostedcluster harbour"
EXPECTED: list[tuple[str, list[str]]] = [
    ("quarterdeck local up --hosted --cluster-version", ["is ready"]),
    ("quarterdeck local up --name harbour", ["is ready"]),
    ("export KUBECONFIG=", []),
    ("kubectl create namespace", ["created"]),
    ("kubectl config view", []),
    ("kubectl create secret", ["created"]),
    ("kubectl create --filename", ["hostedcluster.hypershift.openshift.io/harbour created"]),
    ("kubectl wait hostedcluster", ["condition met"]),
    ("kubectl get deployments", ["2/2", "cluster-version-operator-config", "harbour"]),
    (GET, ["HostedCluster        clusters/harbour", "unset"]),
    (SET, ["log level Debug is in the configuration file", "it was Normal"]),
    (PATCH, ["patched"]),
    ("kubectl logs", ["after=Trace", "method=GET", "v=6"]),
    ("kubectl get pods", ["Running   0 "]),
    (PATCH, ["patched"]),
    (GET, ['"inFile": true', '"level": "unset"']),
    ("kubectl scale", ["scaled"]),
    ("kubectl wait pods", []),
    (SET, ["stopped at the HostedCluster for 2 s", "kubectl get pods --namespace hypershift"]),
    (GET, ["it stopped at the HostedCluster: the hosted operator has not copied it yet"]),
    ("kubectl scale", ["scaled"]),
    ("kubectl delete hostedcluster", ["deleted"]),
    ("kubectl get namespaces", ["clusters"]),
    ("quarterdeck local down --name harbour --purge", []),
    ("quarterdeck local down --purge", []),
]
"""How each command of the document begins, and what its output has to have in it."""
DOCUMENTED = [command for command, _ in commands(TEXT)]


@pytest.fixture
def shell(newcomer: Shell) -> Iterator[Shell]:
    """A newcomer's shell, whose second cluster goes with it too."""
    yield newcomer
    newcomer("quarterdeck local down --name harbour --purge")


def test_every_command_is_expected_here() -> None:
    assert len(DOCUMENTED) == len(EXPECTED)
    for command, (beginning, _) in zip(DOCUMENTED, EXPECTED, strict=True):
        assert command.startswith(beginning)


@pytest.mark.slow
@needs_bubblewrap
def test_the_steps_go_as_they_are_told(shell: Shell) -> None:
    """What is read shows what was written a moment before: it is read until it does."""
    for command, (_, wanted) in zip(DOCUMENTED, EXPECTED, strict=True):
        done = shell(command)
        if command.startswith((GET, "kubectl get", "kubectl logs")):
            done = until(
                lambda: shell(command),  # noqa: B023 - used in this turn only
                lambda it: all(words in it.stdout for words in wanted),  # noqa: B023
                f"{wanted} in the output of: {command}",
            )
        text = done.stdout + done.stderr
        assert [words for words in wanted if words not in text] == [], text
        assert done.returncode == (2 if "# fails" in command else 0), f"{command}: {text}"
        if command.startswith("kubectl get namespaces"):
            assert "clusters-harbour" not in text


def test_the_document_has_all_options() -> None:
    flags = [option.flag for option in options_of(installed().operators["hosted"])]
    assert [flag for flag in flags if f"| `{flag}` |" not in TEXT] == []
