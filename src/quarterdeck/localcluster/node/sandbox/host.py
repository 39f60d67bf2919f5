"""The host's file system, for `mounts`."""

import os
import stat
from pathlib import PurePosixPath

from quarterdeck.localcluster.node.sandbox.mounts import FileKind


class RealHost:
    """The file system of this machine."""

    def kind(self, path: PurePosixPath) -> FileKind:
        """What is at the path; NOTHING if it cannot be read."""
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            return FileKind.NOTHING
        if stat.S_ISLNK(mode):
            return FileKind.LINK
        return FileKind.DIRECTORY if stat.S_ISDIR(mode) else FileKind.FILE

    def entries(self, path: PurePosixPath) -> list[str]:
        """The names in a directory; none if it may not be listed."""
        try:
            return os.listdir(path)  # noqa: PTH208  # names alone, from a pure path
        except OSError:
            return []

    def link(self, path: PurePosixPath) -> str:
        """Where a symbolic link points."""
        return os.readlink(path)  # noqa: PTH115  # a pure path cannot be read
