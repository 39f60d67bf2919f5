"""The error of this package; its message is one line with a remedy."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OWN_PROGRAMS = "set KUBEBUILDER_ASSETS to a directory that has the programs"

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_CLOSED = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ENOENT}
)


class BinariesUnavailable(Exception):  # noqa: N818 - reads as what it says
    """The programs are not available; the message is one line with a remedy."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


def disk_full(where: Path) -> BinariesUnavailable:
    """The error for a file system that ran out of space or quota."""
    return BinariesUnavailable(
        f"disk full: no space left for {where}; free some, "
        "or set QUARTERDECK_CACHE to a directory on a larger disk, then run this again"
    )


def unwritable(where: Path, reason: str) -> BinariesUnavailable:
    """The error for a cache directory that is not writable."""
    return BinariesUnavailable(
        f"cannot write to the cache {where}: {reason}; "
        "set QUARTERDECK_CACHE to a directory that you can write to"
    )


@contextmanager
def explained(where: Path) -> Iterator[None]:
    """Turn an OSError inside the block into an error with a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise disk_full(where) from error
        if error.errno in _CLOSED:
            raise unwritable(where, error.strerror or str(error)) from error
        raise
