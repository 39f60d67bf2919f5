"""Runs a program that the kernel kills when its parent ends: PID PROGRAM [ARGUMENT]...

PID is the parent's process id, as the parent sees it. This is a separate program, because code
between fork and exec is unsafe in a parent with threads. It execs the program, which keeps the
process id.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Request the signal, check that the parent still runs, and exec the program."""
    parent, program = int(arguments[0]), arguments[1:]
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit("the kernel refuses to tie this process to its parent (PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # It ended before the request.
        sys.exit(1)
    os.execv(program[0], program)  # noqa: S606 - the arguments are the caller's own


if __name__ == "__main__":
    main(sys.argv[1:])
