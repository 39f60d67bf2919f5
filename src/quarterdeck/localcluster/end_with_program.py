"""Runs a program, and ends what it leaves behind: PID FD PROGRAM [ARGUMENT]...

PID is the parent's process id, FD a pipe to which the program's process id is written. This is a
separate program, which imports no other module of ours. It is for the node's agent: a container
that starts while its agent is killed ties itself to its parent too late, and nobody would end it.
Here such a process becomes a child of this process, which kills it: at once, and when the program
ends. If the parent ends, everything here ends. The exit code is the program's.
"""

import contextlib
import ctypes
import os
import signal
import sys
from typing import NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SIGNALS = {signal.SIGCHLD, signal.SIGTERM}
LOOK_PERIOD = 0.5
"""Seconds between two looks for processes that were left behind."""
KILL_PERIOD = 0.002
MOST_KILLS = 5000
"""How often to kill before giving up on a process that the kernel does not end."""


def main(arguments: list[str]) -> NoReturn:
    """Run the program; kill whatever it leaves, and end as it did."""
    parent, report, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    libc = ctypes.CDLL(None)
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) or libc.prctl(
        PR_SET_PDEATHSIG, signal.SIGTERM
    ):
        sys.exit("the kernel refuses to hand over the processes that a program leaves behind")
    if os.getppid() != parent:  # It ended before the request.
        sys.exit(1)
    us = os.getpid()
    program = os.fork()
    if program == 0:
        _become(libc, us, report, command)
    os.write(report, b"%d\n" % program)
    os.close(report)
    status = _wait(program)
    _kill_the_rest()
    if os.WIFSIGNALED(status):
        _end_by(os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def _become(libc: ctypes.CDLL, parent: int, report: int, command: list[str]) -> NoReturn:
    """Exec the program in this child process."""
    try:
        os.close(report)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            os.execv(command[0], command)  # noqa: S606 - the arguments are the caller's own
    finally:
        os._exit(127)


def _wait(program: int) -> int:
    """Wait for the program's end, and kill what others leave; return its wait status."""
    while True:
        got = signal.sigtimedwait(SIGNALS, LOOK_PERIOD)
        if got is not None and got.si_signo == signal.SIGTERM:  # the parent has ended
            _kill(program)
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == program:
                return status
            if pid == 0:
                break
        for pid in _children():
            if pid != program:
                _kill(pid)


def _kill_the_rest() -> None:
    """Kill until there is no child left: those of a killed process become children of this one."""
    for _ in range(MOST_KILLS):
        for pid in _children():
            _kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        signal.sigtimedwait(SIGNALS, KILL_PERIOD)


def _children() -> list[int]:
    """The process ids of this process's children."""
    with contextlib.suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children") as stream:  # noqa: PTH123
        return [int(pid) for pid in stream.read().split()]
    return []


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _end_by(number: int) -> None:
    """End by this signal, as the program did."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main(sys.argv[1:])
