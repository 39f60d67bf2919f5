"""A program that runs another and takes it, with all that it started, into its own death.

Run as a script in a session of its own, with a pipe as standard input. When the other end of the
pipe closes, because its owner ended in whatever way, the whole process group is killed. A parent
death signal would not do: it reaches the child only, and `go` starts compilers.
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
    """Run the command to its end; its exit code, or 128 and the signal's number."""
    threading.Thread(target=_die_with_owner, daemon=True).start()
    try:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    # At once: there is nothing to tidy up, and the thread is blocked in a read.
    os._exit(main(sys.argv[1:]))
