"""The command line as the first process of a container."""

import subprocess
import sys

AS_FIRST = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child")
"""Process number 1 of a PID namespace of its own."""

TOLD_TO_END = """
import os, signal, time
from quarterdeck.cli.main import heed_sigterm
assert os.getpid() == 1
heed_sigterm()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(30)
"""


def test_a_sigterm_ends_it_while_it_still_starts() -> None:
    """The kernel drops it otherwise, and a deleted pod would go on for its whole grace period."""
    command = [*AS_FIRST, sys.executable, "-c", TOLD_TO_END]
    assert subprocess.run(command, check=False, timeout=60).returncode == 143
