"""Checks the free disk space before the work begins."""

import os
import shutil
from pathlib import Path

from quarterdeck.localcluster.binaries.errors import BinariesUnavailable, explained
from quarterdeck.localcluster.binaries.progress import size


def require_space(directory: Path, needed: int, purpose: str) -> None:
    """Raise an error if the directory's file system has less than `needed` bytes free."""
    with explained(directory):
        free = shutil.disk_usage(directory).free
    if free < needed:
        raise BinariesUnavailable(
            f"disk full: {purpose} needs {size(needed)}, and {directory} has {size(free)} left; "
            "free some, or set QUARTERDECK_CACHE to a directory on a larger disk"
        )


def used(directory: Path) -> int:
    """The bytes that the files below a directory take on disk; 0 if there are none."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(f"{folder}/{name}").st_blocks * 512
            except FileNotFoundError:
                # A killed build may still be removing its files.
                continue
    return total
