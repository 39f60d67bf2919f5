"""The commands of docs/stale-operators.md, in their order."""

from pathlib import Path

import pytest
from tests.documents import Shell, commands
from tests.integration.pods import needs_bubblewrap
from tests.places import DOCS

from quarterdeck.delivery.options import options_of
from quarterdeck.delivery.registry import installed
from quarterdeck.testing.waiting import until

TEXT = (DOCS / "stale-operators.md").read_text()
SEE = TEXT.partition("## See it")[2].partition("## On your own cluster")[0]


def whole(text: str) -> list[str]:
    """The commands of a text that shows no output: what follows one is its here-document."""
    return [f"{command}\n{rest}".rstrip() for command, rest in commands(text)]


@pytest.mark.slow
@needs_bubblewrap
def test_the_story_of_the_document_can_be_followed(newcomer: Shell, tmp_path: Path) -> None:
    """With a shorter interval than the document's minute; the waiting is done here."""
    available = (
        "kubectl get clusteroperator sample --output "
        "jsonpath='{.status.conditions[?(@.type==\"Available\")].status}'"
    )
    stopped = False
    for command in whole(SEE):
        if "scale" in command:
            stopped = command.endswith(" 0")
        done = newcomer(command)
        # With an interval of seconds an operator is often seen while it is asked, and nobody else
        # may ask it then.
        if " probe " in command and done.returncode == 3:
            done = until(lambda: newcomer(command), lambda it: it.returncode != 3, command)  # noqa: B023
        wanted = ({1} if stopped else {0, 3}) if " explain " in command else {0}
        assert done.returncode in wanted, f"{command}: {done.stdout}{done.stderr}"
        if "local up" in command:
            assert "silent for 1m" in done.stdout
            (file,) = (tmp_path / "home").rglob("manifests/staleness.yaml")
            quicker = file.read_text().replace("--interval=60s", "--interval=3s\n    - --grace=0s")
            file.write_text(quicker)
        if "export" in command:
            newcomer.wait_printed(available, "True")
        if "scale" in command:
            newcomer.wait_printed(available, "Unknown" if stopped else "True")
        if "get events" in command:
            assert "OperatorStale" in done.stdout


def test_the_document_has_all_options() -> None:
    flags = [option.flag for option in options_of(installed().operators["staleness"])]
    assert [flag for flag in flags if f"| `{flag}` |" not in TEXT] == []
