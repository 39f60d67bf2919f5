"""The commands in the live half of docs/payload.md do what it shows, on a cluster of their own."""

import re

import pytest
from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS

pytestmark = [
    pytest.mark.slow,
    needs_bubblewrap,
]
LIVE = (DOCS / "payload.md").read_text().partition("\n# Releases, live\n")[2]
COMMANDS = commands(LIVE)


def without_times(output: str) -> list[str]:
    """The lines with times and the width of columns made alike."""
    alike = re.sub(r"\b\d+[smh](\d+s)?\b", "TIME", output)
    return [re.sub(r"\s+", " ", line).strip() for line in alike.splitlines()]


def test_every_command_shows_what_the_document_shows(newcomer: Shell) -> None:
    assert "local up --payload" in COMMANDS[0][0]
    assert "--purge" in COMMANDS[-1][0]
    for command, output in COMMANDS:
        done = newcomer.succeed(command)
        if output:
            assert without_times(done.stdout) == without_times(output), command
