"""Run a program that the kernel kills when its parent is gone: PID PROGRAM [ARGUMENT]...

PID is the parent, as it sees itself. This is a program of its own, and not code between fork
and exec, because that is unsafe in a parent with threads. It becomes the program that it runs,
so the program keeps its process id.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Ask the kernel for the signal, make sure that the parent still lives, become the program."""
    parent, program = int(arguments[0]), arguments[1:]
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        sys.exit("the kernel refuses to tie this process to its parent (PR_SET_PDEATHSIG)")
    if os.getppid() != parent:  # it died before the kernel knew what to do then
        sys.exit(1)
    os.execv(program[0], program)  # noqa: S606 - the arguments are the caller's own


if __name__ == "__main__":
    main(sys.argv[1:])
