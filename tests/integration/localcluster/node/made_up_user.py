"""A user that root makes up for a test: a home, an environment and the cluster's programs.

Such a user may also be put where no namespaces may be made, as in a plain container; then it may be
root, too, without CAP_SYS_ADMIN.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.places import ROOT

import quarterdeck
from quarterdeck.localcluster.binaries import Binaries

USER = 54_321 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
"""A user id that nobody has; it needs no account. Another one for each worker, so that tests beside
each other do not see each other's processes."""

PYTHON = Path("/usr/bin/python3")
"""The machine's own interpreter: ours may lie where only root can go."""

TESTS = Path(__file__).parent
WITHOUT_NAMESPACES = TESTS / "without_namespaces.py"
LIMIT = 240

NOT_BY_A_MADE_UP_USER = (
    "test_node_soak.py",
    "test_node_rootless.py",
    "test_node_without_namespaces.py",
)
"""The node's tests that take very long, or make up users themselves."""


def is_usable(python: Path) -> bool:
    """Whether packages that were installed for our interpreter work with that one."""
    asked = "import sys; print(sys.version_info[:2])"
    told = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=False)
    return told.stdout.strip() == str(tuple(sys.version_info[:2]))


class Ordinary:
    """A user with a home of its own: an environment, the cluster's programs, nothing else."""

    def __init__(
        self, home: Path, binaries: Binaries, *, uid: int = USER, namespaces: bool = True
    ) -> None:
        self.home = home
        self.uid = uid
        self.namespaces = namespaces
        programs = home / "programs"
        programs.mkdir()
        for name, path in binaries.paths.items():
            try:
                (programs / name).hardlink_to(path.resolve())
            except OSError:  # another file system
                shutil.copy2(path, programs / name)
        self.python = home / "venv" / "bin" / "python"
        self.environment = {
            "HOME": str(home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "KUBEBUILDER_ASSETS": str(programs),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        os.chown(home, uid, uid)
        self.run(str(PYTHON), "-m", "venv", "--without-pip", str(home / "venv"))
        self._install()

    def _install(self) -> None:
        """Our package and its dependencies, where they are; and the program `quarterdeck`."""
        (site,) = (self.home / "venv" / "lib").glob("python3*/site-packages")
        package = Path(quarterdeck.__file__).parents[1]
        dependencies = Path(pytest.__file__).parents[1]
        (site / "ours.pth").write_text(f"{package}\n{dependencies}\n")
        program = self.python.with_name("quarterdeck")
        program.write_text(f"#!{self.python}\nfrom quarterdeck.cli.main import main\nmain()\n")
        program.chmod(0o755)

    def run(
        self, *command: str, limit: float = LIMIT, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self._words(command),
            **self._identity(),
            env=self.environment | environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )

    def _words(self, command: Sequence[str]) -> list[str]:
        if self.namespaces:
            return list(command)
        return [sys.executable, str(WITHOUT_NAMESPACES), str(self.uid), *command]

    def _identity(self) -> dict[str, Any]:
        """Without namespaces the program that forbids them takes the user."""
        if not self.namespaces:
            return {}
        return {"user": self.uid, "group": self.uid, "extra_groups": []}

    def start(self, *words: str) -> "Foreground":
        """Start our program, as from a shell."""
        return Foreground(
            subprocess.Popen(
                self._words((str(self.python.with_name("quarterdeck")), *words)),
                **self._identity(),
                env=self.environment,
                cwd=self.home,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )

    def pytest(
        self, *words: str, limit: float = LIMIT, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run tests of this clone as the user."""
        quiet = ("-q", "-n0", "-p", "no:cacheprovider", f"--basetemp={self.home}/tests")
        where = f"--rootdir={ROOT}"
        paths = [str(TESTS / word) if word.endswith(".py") else word for word in words]
        config = ("-c", str(ROOT / "pyproject.toml"), where)
        program = (str(self.python), "-m", "pytest", *config, *quiet)
        return self.run(*program, *paths, limit=limit, TMPDIR=str(self.home), **environment)

    def local(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.run(str(self.python.with_name("quarterdeck")), "local", *words)


class Foreground:
    """A program that runs beside the test, and what it shows."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def read_until(self, text: str) -> str:
        """What it has shown, up to the line with the text."""
        assert self.process.stdout is not None
        shown = ""
        for line in self.process.stdout:
            shown += line
            if text in line:
                return shown
        raise AssertionError(f"ended without {text!r}: {shown}")


def flags_of_make_up() -> list[str]:
    """What the Makefile adds to `local up --foreground`."""
    makefile = (ROOT / "Makefile").read_text()
    found = re.search(r"local up --foreground ([a-z -]+)", makefile)
    assert found is not None
    return found[1].split()


def runs_for(user: int, entry: Path) -> bool:
    """Whether this is a process of the user; one that has ended and waits to be noticed is not."""
    try:
        return entry.stat().st_uid == user and (entry / "cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False
