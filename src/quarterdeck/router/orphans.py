"""Stops a HAProxy that a killed router left behind, once its successor serves."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from quarterdeck.log import get_logger

log = get_logger("router.orphans")


def soft_stop_orphan(pid_file: Path, program: str) -> None:
    """Let the HAProxy of the pid file finish its connections and end, if it still runs.

    Both listen on the same ports until then, so no connection is refused.
    """
    try:
        pid = int(pid_file.read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return
    # The number may be another process's by now: ours has our directory in its arguments.
    directory = str(pid_file.parent).encode()
    if words[0].endswith(program.encode()) and any(directory in word for word in words[1:]):
        log.info("stopping the haproxy of an earlier router", pid=pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR1)
