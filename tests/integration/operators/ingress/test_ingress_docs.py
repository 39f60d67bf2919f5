"""The commands of docs/access-logs.md, in their order, on the cluster that the document starts."""

import re
from pathlib import Path

import pytest
from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS

from quarterdeck.testing.waiting import until

TEXT = (DOCS / "access-logs.md").read_text()
FILES = dict(re.findall(r"^```yaml (\S+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))


@pytest.mark.slow
@needs_bubblewrap
def test_the_stories_of_the_document_can_be_followed(newcomer: Shell, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    for command, rest in commands(TEXT):
        whole = f"{command}\n{rest}".rstrip()
        wanted = 1 if "bad-format" in command else 0
        if "--container logs" in command:
            # A line takes a moment from the router to its reader.
            done = until(
                lambda: newcomer(whole),  # noqa: B023
                lambda it: "GET /hello" in it.stdout,
                "the line of the request",
            )
        else:
            done = newcomer(whole)
        assert done.returncode == wanted, f"{command}: {done.stdout}{done.stderr}"
        if "bad-format" in command:
            assert "character 5 ('%zz'): HAProxy: no such format variable 'zz'" in done.stdout
        if "explain shop --file" in command:
            assert "pods are replaced: yes" in done.stdout
