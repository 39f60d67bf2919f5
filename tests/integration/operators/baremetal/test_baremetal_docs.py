"""The commands of docs/baremetal.md, in their order, and what they show."""

import re

import pytest
from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS

from quarterdeck.testing.waiting import eventually

pytestmark = [pytest.mark.slow, needs_bubblewrap]

TEXT = (DOCS / "baremetal.md").read_text()
VARIES = re.compile(r"\b(\d+[dhms](\d+[hms])?|[0-9a-f]{16})\b| +")
"""Times, hashes, and the width of columns."""


def test_the_document(newcomer: Shell) -> None:
    for command, output in commands(TEXT):
        if command == "quarterdeck operators baremetal":
            done = newcomer(command)
            assert done.returncode == 1, done.stdout
            assert "InvalidConfiguration" in done.stdout
            assert "spec.provisioningIP: '10.0.0.1': pick an address" in done.stdout
        elif command == "quarterdeck handover status" and not output:
            owned = "the machine API operator has it"
            eventually(lambda: "machine-api" in managed_by(newcomer), owned)
        else:
            done = newcomer.succeed(command)
            assert not output or same(done.stdout) == same(output)


def managed_by(shell: Shell) -> str:
    shown = shell.succeed("quarterdeck handover status").stdout
    (line,) = (one for one in shown.splitlines() if one.startswith("managed by"))
    return line


def same(text: str) -> str:
    return VARIES.sub(" ", text).replace(" \n", "\n").strip()
