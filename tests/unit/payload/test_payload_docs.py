"""The commands in docs/payload.md do what it shows."""

import re
from pathlib import Path

import pytest
from tests.documents import Shell, commands
from tests.places import ROOT

from quarterdeck.payload.filters import FILTERS
from quarterdeck.payload.load import read_payload

# What needs a cluster is tried by `test_version_docs.py` of the integration tests.
TEXT = (ROOT / "docs" / "payload.md").read_text()
COMMANDS = commands(TEXT)


def printed(command: str, directory: Path) -> str:
    """What a reader sees, errors too."""
    return Shell(directory)(f"exec 2>&1; {command}").stdout


@pytest.mark.parametrize(("command", "output"), COMMANDS, ids=[c for c, _ in COMMANDS])
def test_a_command_shows_what_the_document_shows(tmp_path: Path, command: str, output: str) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    assert printed(command, tmp_path) == output


def test_the_picture_in_the_document_is_what_its_command_makes(tmp_path: Path) -> None:
    (command,) = [command for command, _ in COMMANDS if command.endswith("> order.svg")]
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    printed(command, tmp_path)
    committed = ROOT / "docs" / "examples" / "order.svg"
    assert (tmp_path / "order.svg").read_text() == committed.read_text()


def test_the_document_explains_every_finding() -> None:
    """Each code that a rule can give is in the table of findings."""
    package = ROOT / "src" / "quarterdeck" / "payload"
    sources = "".join(path.read_text() for path in package.glob("*lint*.py"))
    sources += (package / "findings.py").read_text()
    codes = re.findall(r'(?:error|warning)\(\s*"([a-z-]+)"', sources)
    codes += re.findall(r'code="([a-z-]+)"', sources)
    assert len(set(codes)) >= 15
    assert [code for code in codes if f"`{code}`" not in TEXT] == []


def test_the_document_lists_all_filters() -> None:
    section = TEXT.partition("## why")[2].partition("## graph")[0]
    rows = re.findall(r"^\| (\d) \|", section, re.MULTILINE)
    assert rows == [str(number) for number in range(1, len(FILTERS) + 1)]


def test_the_example_is_a_release_whose_placeholders_are_replaced() -> None:
    payload = read_payload([ROOT / "docs" / "examples" / "payload"]).payload
    assert payload.release.version == "1.2.0"
    (deployment,) = [m for m in payload.manifests if m.object["kind"] == "Deployment"]
    (container,) = deployment.object["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("registry.example.test/harbour@sha256:")
    assert container["env"] == [{"name": "RELEASE_VERSION", "value": "1.2.0"}]
