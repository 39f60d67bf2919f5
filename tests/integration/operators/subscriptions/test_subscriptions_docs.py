"""The commands of docs/operator-configuration.md, in their order, in a cluster of their own."""

import re
from pathlib import Path

import pytest
from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS


@pytest.mark.slow
@needs_bubblewrap
def test_the_commands_of_the_document(newcomer: Shell, tmp_path: Path) -> None:
    """The operator runs from its own Deployment there, and so does what it installs."""
    (tmp_path / "docs").symlink_to(DOCS)
    text = ""
    for command, _ in commands((DOCS / "operator-configuration.md").read_text()):
        text += newcomer.succeed(command).stdout
    assert "sample-subscription" in text
    assert re.search(r"^env\[ARGS\] +config\[0\] +-v=4$", text, re.MULTILINE)
    assert "sample-operator.v0.1.0 (install-sample-operator-" in text
    assert "Deployment sample-operator: spec.template.spec.containers.*" in text
    assert text.count("nothing differs") == 2
