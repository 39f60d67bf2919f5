"""How far bubblewrap is with a container, as seen from outside: it announces nothing."""

from pathlib import Path

from quarterdeck.localcluster.node.sandbox.bubblewrap import bubblewrap

CAP_SYS_ADMIN = 21


def mounts_are_made(pid: int) -> bool:
    """Whether bubblewrap has made the mounts, and with them lost the right to make more."""
    return not _capabilities(pid) >> CAP_SYS_ADMIN & 1


def _capabilities(pid: int) -> int:
    """The capabilities that a process has now, as the kernel counts; all for one that is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return -1
    line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return int(line.split()[1], 16)


def is_set_up(pid: int) -> bool:
    """Whether the container's program runs, and has no capabilities any more.

    What becomes another user has some until it is done.
    """
    try:
        program = Path(f"/proc/{pid}/exe").readlink()
    except OSError:
        return False
    return program != Path(bubblewrap()).resolve() and _capabilities(pid) == 0
