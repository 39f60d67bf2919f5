"""The commands and example files of documents: found in a text, and run."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.testing.waiting import until

LIMIT = 280
"""Seconds; a cluster is started and stopped within it."""
PRINTED_LIMIT = 120
"""Seconds until a command that is repeated has to print what is waited for."""

Done = subprocess.CompletedProcess[str]


def commands(text: str) -> list[tuple[str, str]]:
    """Each command of the text's console blocks, with what is shown after it.

    A here-document, which ends with a line `EOF`, belongs to its command.
    """
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    found = []
    for part in (part for block in blocks for part in re.split(r"^\$ ", block, flags=re.M)[1:]):
        end = "\nEOF\n" if "<<EOF" in part.partition("\n")[0] else "\n"
        command, _, output = part.partition(end)
        found.append((command + end.rstrip("\n"), output))
    return found


def example_files(page: Path) -> dict[str, str]:
    """The Python files of a page by name: each is a block that begins with ```python NAME."""
    found = re.findall(r"^```python (\S+)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return dict(found)


def example_module(page: Path, name: str) -> dict[str, Any]:
    """The names that a file of a page defines."""
    module: dict[str, Any] = {"__name__": name.removesuffix(".py")}
    code = compile(example_files(page)[name], f"{page.name}:{name}", "exec")
    exec(code, module)  # noqa: S102 - our own document
    return module


class Shell:
    """A shell in a directory, with `quarterdeck` on its path; it remembers `export`s.

    The pinned programs are on its path too, where they are given.
    """

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        binaries: Binaries | None = None,
    ) -> None:
        self._directory = directory
        search = [str(Path(sys.executable).parent), os.environ["PATH"]]
        self.variables = dict(os.environ)
        if binaries is not None:
            programs = directory / "programs"
            programs.mkdir()
            for name, path in binaries.paths.items():
                (programs / name).symlink_to(path)
            search.insert(1, str(programs))
            self.variables["KUBEBUILDER_ASSETS"] = str(programs)
        self.variables |= {"PATH": os.pathsep.join(search), **(environment or {})}

    def __call__(self, command: str) -> Done:
        """What a command did, whether well or not."""
        if exported := re.fullmatch(r"export (\w+)=(.*)", command):
            self.variables[exported[1]] = exported[2].replace("~", self.variables["HOME"])
        return subprocess.run(
            ["sh", "-c", command],
            env=self.variables,
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    def succeed(self, command: str) -> Done:
        """What a command did, which has to end well."""
        done = self(command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done

    def start(self, command: str, log: Path) -> "subprocess.Popen[bytes]":
        """A command that goes on in the background, and writes what it says to the log."""
        with log.open("wb") as output:
            return subprocess.Popen(
                ["sh", "-c", f"exec {command}"],
                cwd=self._directory,
                env=self.variables,
                stdout=output,
                stderr=output,
            )

    def wait_printed(self, command: str, wanted: str) -> None:
        """Return when a command prints this."""
        self.wait_output(command, lambda seen: seen.strip() == wanted)

    def wait_output(self, command: str, is_wanted: Callable[[str], bool]) -> None:
        """Return when a command prints what is wanted."""
        until(lambda: self(command).stdout, is_wanted, command, PRINTED_LIMIT)
