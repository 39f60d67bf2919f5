"""A copy of the package with changes, for tests of what another build would do.

build = ChangedPackage(tmp_path)
build.add("operators/ingress/logging/access/destination/file.py", SOURCE)
build.insert("api/operator_v1/access_logging.py", after=LINE, text=MEMBER)
build.run("-c", "import quarterdeck")
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.places import ROOT


class ChangedPackage:
    """Another build of Quarterdeck, which runs in processes of its own."""

    def __init__(self, directory: Path) -> None:
        self._root = directory / "build"
        self.changes: list[str] = []
        """The files that were added and the lines that were inserted."""
        source = ROOT / "src" / "quarterdeck"
        # With the byte code: it counts for files that are as old and as long as the compiled ones.
        shutil.copytree(source, self._root / "quarterdeck")

    def add(self, path: str, text: str) -> None:
        """Add a module."""
        (self._root / "quarterdeck" / path).write_text(text)
        self.changes.append(path)

    def insert(self, path: str, *, after: str, text: str) -> None:
        """Insert lines after the only place with this text."""
        self.replace(path, after, after + text)
        self.changes.append(text)

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace the only occurrence of a text."""
        file = self._root / "quarterdeck" / path
        content = file.read_text()
        assert content.count(old) == 1, (path, old)
        file.write_text(content.replace(old, new))

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which this build is imported."""
        return os.environ | {"PYTHONPATH": str(self._root), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, *arguments: str) -> str:
        """The output of a Python process with this build."""
        done = subprocess.run(
            [sys.executable, *arguments],
            env=self.environment,
            cwd=self._root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
