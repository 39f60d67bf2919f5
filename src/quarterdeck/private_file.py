"""Replaces a file in one step by one that only its owner can read.

It imports nothing of the project, so that what must stay small can use it too.
"""

import os
from pathlib import Path


def write_private(path: Path, data: bytes, *, owner: int = -1, durable: bool = False) -> None:
    """Replace a file in one step by one that only its owner can read; -1 is our own user.

    With `durable` it is on the disk when this returns: a machine that loses its power has the old
    file or the new one. The directory may be somebody else's: no link in it is followed.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    # What a process of the same number has left may have other rights, or be a link.
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchown(descriptor, owner, -1)
            file.write(data)
            if durable:
                file.flush()
                os.fsync(descriptor)
        beside.replace(path)
    except BaseException:
        # A part of a private key is not to lie around.
        beside.unlink(missing_ok=True)
        raise
    if durable:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
