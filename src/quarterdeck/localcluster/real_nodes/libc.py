"""The system calls of namespaces and mounts that Python 3.11 does not have."""

import ctypes
import os
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_SHARED = 1 << 20

_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces of these flags for new ones."""
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: Path | str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount a source at a target."""
    result = _libc.mount(
        source.encode(), os.fsencode(target), kind.encode() or None, flags, data.encode() or None
    )
    _check(result, f"mount {target}")


def end_with_parent(number: int) -> None:
    """Let the kernel send this signal to this process when the thread that forked it ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, number), "prctl")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
