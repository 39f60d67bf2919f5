"""One process at a time fills a directory; the others wait, and say for whom."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quarterdeck.localcluster.binaries.errors import explained
from quarterdeck.localcluster.binaries.progress import Progress, step

POLL_SECONDS = 0.2


@contextmanager
def only_one(directory: Path, progress: Progress) -> Iterator[None]:
    """Hold the directory's lock inside the block.

    The kernel frees the lock with its holder, however that ends. The file stays: if it were
    removed, two processes could each hold a lock on a file of that name.
    """
    with explained(directory):
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor, progress)
        with explained(directory):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, progress: Progress) -> None:
    while not _try(descriptor):
        holder = _holder(descriptor)
        with step(progress, f"waiting for the build of process {holder}"):
            # Until it is our turn, or that of somebody else who waited too.
            while _holder(descriptor) == holder:
                time.sleep(POLL_SECONDS)
                if _try(descriptor):
                    return
                progress.update("")


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> str:
    # Empty for the instant between the holder's lock and its writing of the number.
    return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "(just started)"
