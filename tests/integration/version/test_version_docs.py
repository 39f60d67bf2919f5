"""The commands in the live half of docs/payload.md do what it shows, on a cluster of their own."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quarterdeck.localcluster.binaries import Binaries

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing"),
]
DOCS = Path(__file__).parents[3] / "docs" / "payload.md"
BLOCKS = re.findall(
    r"^```console\n(.*?)^```",
    DOCS.read_text().partition("\n# Releases, live\n")[2],
    re.MULTILINE | re.DOTALL,
)

Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


def commands() -> list[tuple[str, str]]:
    """Each command with the output that is shown after it."""
    parts = [part for block in BLOCKS for part in re.split(r"^\$ ", block, flags=re.M)[1:]]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def without_times(output: str) -> list[str]:
    """The lines with times and the width of columns made alike."""
    alike = re.sub(r"\b\d+[smh](\d+s)?\b", "TIME", output)
    return [re.sub(r"\s+", " ", line).strip() for line in alike.splitlines()]


@pytest.fixture
def shell(tmp_path: Path, control_plane_binaries: Binaries) -> Iterator[Shell]:
    """A newcomer's shell: `quarterdeck` on the path, and a home directory without a cluster."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, path in control_plane_binaries.paths.items():
        (programs / name).symlink_to(path)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "KUBEBUILDER_ASSETS": str(programs),
    }

    def run(command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["sh", "-c", command],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    yield run
    run("quarterdeck local down --purge")


def test_every_command_shows_what_the_document_shows(shell: Shell) -> None:
    assert "local up --payload" in commands()[0][0]
    assert "--purge" in commands()[-1][0]
    for command, output in commands():
        done = shell(command)
        assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"
        if output:
            assert without_times(done.stdout) == without_times(output), command
