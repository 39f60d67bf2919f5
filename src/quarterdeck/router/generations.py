"""The router's files: a directory for each configuration, and a link to the one that counts.

A directory is complete and checked before the link points to it, in one step. So whoever starts
HAProxy from the link, also after a crash, gets a good configuration.
"""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from quarterdeck.haproxy.render import CONFIG_FILE, admin_socket

_KEPT = 3
_NAME = re.compile(r"generation-(\d+)")


class Generations:
    """The configurations below a directory, by ascending number."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.current = directory / "current"

    @property
    def config(self) -> Path:
        """The haproxy.cfg that counts."""
        return self.current / CONFIG_FILE

    def number(self) -> int:
        """The number of the configuration that counts; 0 if there is none."""
        try:
            match = _NAME.fullmatch(str(self.current.readlink()))
        except OSError:
            return 0
        return int(match[1]) if match and self.config.is_file() else 0

    def write(self, number: int, files: Mapping[str, str]) -> Path:
        """Write a configuration that does not count yet; return its haproxy.cfg."""
        target = self._directory / f"generation-{number}"
        shutil.rmtree(target, ignore_errors=True)
        for name, text in files.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # It may be a private key.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(text)
        return target / CONFIG_FILE

    def make_current(self, number: int) -> None:
        """Let this configuration count, and remove those that nobody uses any more.

        A worker leaves its admin socket behind; who follows an old one has connected before.
        """
        link = self._directory / "next"
        link.unlink(missing_ok=True)
        link.symlink_to(f"generation-{number}")
        link.rename(self.current)
        for path in self._directory.glob("generation-*"):
            match = _NAME.fullmatch(path.name)
            if match and int(match[1]) <= number - _KEPT:
                shutil.rmtree(path, ignore_errors=True)
        self.remove(admin_socket(str(self._directory), number - _KEPT))

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        Path(path).unlink(missing_ok=True)

    def discard(self, number: int) -> None:
        """Remove a configuration that was refused."""
        shutil.rmtree(self._directory / f"generation-{number}", ignore_errors=True)
