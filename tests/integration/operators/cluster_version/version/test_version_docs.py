"""The commands in docs/updating.md do what it shows, on a cluster of their own."""

import re

import pytest
from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS

pytestmark = [
    pytest.mark.slow,
    needs_bubblewrap,
]
COMMANDS = commands((DOCS / "updating.md").read_text())
REFUSED = "quarterdeck update 0.2.0"
"""The one command that ends with another exit code than 0."""


def without_times(output: str) -> list[str]:
    """The lines with times and the width of columns made alike."""
    alike = re.sub(r"\b\d+[smh](\d+s)?\b", "TIME", output)
    return [re.sub(r"\s+", " ", line).strip() for line in alike.splitlines()]


def test_every_command_shows_what_the_document_shows(newcomer: Shell) -> None:
    assert "local up --payload" in COMMANDS[0][0]
    assert "--purge" in COMMANDS[-1][0]
    for command, output in COMMANDS:
        done = newcomer(command)
        assert done.returncode == (command == REFUSED), f"{command}: {done.stdout}{done.stderr}"
        if output:
            assert without_times(done.stdout) == without_times(output), command
