"""The commands of docs/local-cluster.md, in their order, on a cluster of their own."""

import re

from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS

pytestmark = needs_bubblewrap

COMMANDS = [command for command, _ in commands((DOCS / "local-cluster.md").read_text())]


def test_every_command_of_the_document_works(newcomer: Shell) -> None:
    """Those that go on for ever are ended after a moment; the others end well by themselves."""
    assert "local up" in COMMANDS[0]
    assert "--purge" in COMMANDS[-1]
    pod = ""
    for written in COMMANDS:
        command = re.sub(r"sample-operator-[a-z0-9]+-[a-z0-9]+", pod, written)
        endless = re.search(r" (-f|--watch)$", command) is not None
        done = newcomer(f"timeout 3 {command}" if endless else command)
        assert done.returncode == (124 if endless else 0), f"{command}: {done.stderr}"
        assert done.stdout.strip() or "-- sh" in command, f"{command} shows nothing"
        pods = re.findall(r"sample-operator-[a-z0-9]+-[a-z0-9]+", done.stdout)
        pod = pods[0] if pods else pod
    assert pod
