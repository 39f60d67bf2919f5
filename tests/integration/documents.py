"""What tests of documents share: the commands in a text, and a newcomer's shell to run them in."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from quarterdeck.localcluster.binaries import Binaries

LIMIT = 280
"""Seconds; a cluster is started and stopped within it."""

Shell = Callable[[str], "subprocess.CompletedProcess[str]"]


def commands(text: str) -> list[tuple[str, str]]:
    """Each command of the text's console blocks, with what is shown after it."""
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.M)[1:]]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def shell_in(directory: Path, binaries: Binaries, environment: dict[str, str]) -> Shell:
    """A shell with `quarterdeck` and the pinned programs on its path; it remembers `export`s."""
    programs = directory / "programs"
    programs.mkdir()
    for name, path in binaries.paths.items():
        (programs / name).symlink_to(path)
    search = os.pathsep.join([str(Path(sys.executable).parent), str(programs), os.environ["PATH"]])
    variables = os.environ | {"PATH": search, "KUBEBUILDER_ASSETS": str(programs)} | environment

    def run(command: str) -> "subprocess.CompletedProcess[str]":
        if exported := re.fullmatch(r"export (\w+)=(.*)", command):
            variables[exported[1]] = exported[2].replace("~", variables["HOME"])
        return subprocess.run(
            ["sh", "-c", command],
            env=variables,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    return run
