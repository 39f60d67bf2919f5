"""Runs a command, and kills it with all its children when this program's owner ends.

It runs as a script in its own session, with a pipe as standard input. When the owner ends, its end
of the pipe closes, and this script kills the whole process group. A parent death signal is not
enough: it reaches only the child, and `go` starts compilers.
"""

import os
import signal
import subprocess
import sys
import threading


def _die_with_owner() -> None:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


def main(command: list[str]) -> int:
    """Run the command, and return its exit code, or 128 plus the signal's number."""
    threading.Thread(target=_die_with_owner, daemon=True).start()
    try:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    # Without a normal exit: the thread is blocked in a read, and there is nothing to clean up.
    os._exit(main(sys.argv[1:]))
