"""Whether there is room, asked before the work and not an hour into it."""

import os
import shutil
from pathlib import Path

from quarterdeck.localcluster.binaries.errors import BinariesUnavailable, explained
from quarterdeck.localcluster.binaries.progress import size


def require_space(directory: Path, needed: int, purpose: str) -> None:
    """Refuse when the directory's file system has less than `needed` bytes left for us."""
    with explained(directory):
        free = shutil.disk_usage(directory).free
    if free < needed:
        raise BinariesUnavailable(
            f"disk full: {purpose} needs {size(needed)}, and {directory} has {size(free)} left; "
            "free some, or set QUARTERDECK_CACHE to a directory on a larger disk"
        )


def used(directory: Path) -> int:
    """The bytes that the files below a directory take on disk; 0 when there is none."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(f"{folder}/{name}").st_blocks * 512
            except FileNotFoundError:
                # The rest of a build that was killed may still be tidying up after itself.
                continue
    return total
