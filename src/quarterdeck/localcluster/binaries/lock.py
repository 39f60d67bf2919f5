"""A lock that lets one process at a time fill a directory; the others show whom they wait for."""

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
def directory_lock(directory: Path, progress: Progress) -> Iterator[None]:
    """Hold the directory's lock inside the block.

    The kernel releases the lock when its holder ends. The file is never removed: otherwise two
    processes could each lock a file of that name.
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
            # Until we get the lock, or another waiting process does.
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
    # The file is empty between the holder's lock and its write.
    return os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "(just started)"
