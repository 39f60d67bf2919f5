"""The commands of docs/real-nodes.md, on a cluster of their own; then the machine is as it was."""

import re
from pathlib import Path

from tests.documents import Shell, commands
from tests.e2e.conftest import Images
from tests.e2e.machine import differences, machine
from tests.places import DOCS

PAGE = (DOCS / "real-nodes.md").read_text()
BUILD = "quarterdeck image build -o quarterdeck.tar"


def test_every_command_of_the_document_works(tmp_path: Path, homes: Path, images: Images) -> None:
    before = machine()
    shell = Shell(tmp_path, {"XDG_STATE_HOME": str(homes / "docs")})
    every = commands(PAGE)
    assert "--real-nodes 2" in every[0][0]
    assert "--purge" in every[-1][0]
    try:
        for command, shown in every:
            if command == BUILD:  # The fixture has run it.
                (tmp_path / "quarterdeck.tar").symlink_to(images.operators_archive)
                continue
            done = shell(command)
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
            assert matches(shown, done.stdout), f"{command}: {done.stdout}"
    finally:
        shell("quarterdeck local down --purge")
    assert not differences(before, machine())


def matches(shown: str, printed: str) -> bool:
    """Whether the output is what the page shows, in which `...` is anything."""
    pieces = [re.escape(piece) for piece in re.sub(r"[ \n]+", " ", shown).strip().split("...")]
    return re.fullmatch(".*".join(pieces), re.sub(r"[ \n]+", " ", printed).strip()) is not None
