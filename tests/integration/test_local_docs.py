"""The commands of docs/local-cluster.md, in their order, on a cluster of their own."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quarterdeck.localcluster.binaries import Binaries

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing")

TEXT = (Path(__file__).parents[2] / "docs" / "local-cluster.md").read_text()
BLOCKS = re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = [line[2:] for block in BLOCKS for line in block.splitlines() if line.startswith("$ ")]

Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shell(tmp_path: Path, control_plane_binaries: Binaries) -> Iterator[Shell]:
    """A newcomer's shell: `quarterdeck` on the path, and a home directory without a cluster."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, path in control_plane_binaries.paths.items():
        (programs / name).symlink_to(path)
    home = tmp_path / "home"
    home.mkdir()
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "KUBEBUILDER_ASSETS": str(programs),
    }

    def run(command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["sh", "-c", command],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    yield run
    run("quarterdeck local down --purge")


def test_every_command_of_the_document_works(shell: Shell) -> None:
    """Those that go on for ever are ended after a moment; the others end well by themselves."""
    assert "local up" in COMMANDS[0]
    assert "--purge" in COMMANDS[-1]
    pod = ""
    for written in COMMANDS:
        command = re.sub(r"sample-operator-[a-z0-9]+-[a-z0-9]+", pod, written)
        endless = re.search(r" (-f|--watch)$", command) is not None
        done = shell(f"timeout 3 {command}" if endless else command)
        assert done.returncode == (124 if endless else 0), f"{command}: {done.stderr}"
        assert done.stdout.strip() or "-- sh" in command, f"{command} shows nothing"
        pods = re.findall(r"sample-operator-[a-z0-9]+-[a-z0-9]+", done.stdout)
        pod = pods[0] if pods else pod
    assert pod
