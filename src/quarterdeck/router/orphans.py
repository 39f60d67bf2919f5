"""Stops the HAProxy that a killed router left behind, once its successor serves.

Both listen on the same ports until then, so no connection is refused.
"""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from quarterdeck.backoff import Backoff, Retries
from quarterdeck.log import get_logger

log = get_logger("router.orphans")

SIGNALS = Backoff(base=0.5, limit=60.0)
"""Between two signals: a master that is just replacing itself for a reload misses one."""


async def soft_stop_orphans(master_socket: str, ours: int) -> None:
    """Let every other master of this socket finish its connections; return when all have ended."""
    retries = Retries(SIGNALS)
    while found := masters(master_socket, ours) - {ours}:
        for pid in found:
            log.info("stopping the haproxy of an earlier router", pid=pid)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)
        await asyncio.sleep(retries.next())


def masters(master_socket: str, ours: int = 0) -> set[int]:
    """The process ids of the HAProxy masters with this socket in their arguments.

    Their workers have the same arguments, and a master as their parent. A master that is just
    replacing itself shows no arguments, so the workers of `ours` are known by its process id.
    """
    wanted = f"{master_socket},".encode()
    parents = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError):  # it has ended since
            words = (entry / "cmdline").read_bytes().split(b"\0")
            is_haproxy = words[0].rpartition(b"/")[2] == b"haproxy"
            if is_haproxy and any(word.startswith(wanted) for word in words[1:]):
                # The name in parentheses may contain anything.
                after_name = (entry / "stat").read_text(errors="replace").rpartition(")")[2]
                state, parent = after_name.split()[:2]
                if state != "Z":
                    parents[int(entry.name)] = int(parent)
    return {pid for pid, parent in parents.items() if parent not in {ours, *parents}}
