"""The commands in docs/updating.md do what it shows, on a cluster of their own."""

import re
from functools import partial

import pytest
from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS

pytestmark = [
    pytest.mark.slow,
    needs_bubblewrap,
]
COMMANDS = commands((DOCS / "updating.md").read_text())
REFUSED, STUCK = "quarterdeck update 0.2.0", "what fails:"
"""A command, and the output of another, that end with exit code 1."""
GET = "kubectl get clusterversion,clusteroperators"


def without_times(output: str) -> str:
    """The text with times and the width of columns made alike."""
    alike = re.sub(r"\b\d+[smh](\d+s)?\b", "TIME", output)
    return "\n".join(re.sub(r"\s+", " ", line).strip() for line in alike.splitlines())


def like(output: str, shown: str) -> bool:
    """Whether an output is as the document shows it, where `...` stands for anything in a line."""
    parts = map(re.escape, without_times(shown).split("..."))
    return re.fullmatch(".*".join(parts), without_times(output)) is not None


def test_every_command_shows_what_the_document_shows(newcomer: Shell) -> None:
    assert "local up --payload" in COMMANDS[0][0]
    assert "--purge" in COMMANDS[-1][0]
    for command, output in COMMANDS:
        if GET in command:  # An operator reports a moment after what it reports about.
            newcomer.wait_output(command, partial(like, shown=output))
        done = newcomer(command)
        ends_with = command == REFUSED or STUCK in output
        assert done.returncode == ends_with, f"{command}: {done.stdout}{done.stderr}"
        if output:
            assert like(done.stdout, output), f"{command}: {done.stdout}"
