"""Ends all processes of a container in proot together: `python -I -S keeper.py FD`.

It is a separate program, which imports no other module of ours. Without a PID namespace, nothing
ends the processes that a container leaves behind, and proot does not either. They become children
of this process when their parents end. It kills them all when the container's own process or the
agent ends, on SIGTERM, or when the container that it enters ends.

It reports like bubblewrap: a line of JSON with the process, and one with its exit code.
"""

import ctypes
import marshal
import os
import select
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
ENDED_OTHERWISE = 137
KILLS_BEFORE_PROOT = 50
"""The number of rounds without killing proot, which ends by itself after the other processes."""


def main() -> NoReturn:
    """Run the order's command, and exit with its exit code when all its processes have ended."""
    os.lseek(int(sys.argv[1]), 0, os.SEEK_SET)
    with open(int(sys.argv[1]), "rb", closefd=False) as stream:
        order = marshal.load(stream)  # noqa: S302  # the agent wrote it
    end, signalled = os.pipe()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(signalled, b"end"))
    for number in (signal.SIGINT, signal.SIGQUIT):  # They are for the command.
        signal.signal(number, signal.SIG_IGN)
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if order["parent"] is not None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != order["parent"]:  # It ended before the request.
            os._exit(ENDED_OTHERWISE)
    reports, proot = _start(order)
    code = ENDED_OTHERWISE
    try:
        watched = [end, reports, os.pidfd_open(proot)]
        if order["beside"]:
            watched.append(os.pidfd_open(order["beside"]))
        code = _follow(watched, order["status"])
    finally:  # whatever was reported: nothing is left
        _end_all(proot)
        os._exit(code)


def _start(order: dict[str, Any]) -> tuple[int, int]:
    """Start proot; return the pipe of its first process's reports, and its PID."""
    reports, report = os.pipe()
    proot = os.fork()
    if proot == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(report, order["report"])
        os.execve(order["command"][0], order["command"], {})  # noqa: S606
    os.close(report)
    return reports, proot


def _follow(watched: list[int], status: int | None) -> int:
    """Wait for the first event that ends the container, and return the exit code.

    The container's processes can write reports too: a report may not name a process outside.
    """
    reports = watched[1]
    unread = b""
    begun = False
    while True:
        ready, _, _ = select.select(watched, [], [])
        if reports in ready:
            chunk = os.read(reports, 4096)
            unread = (unread + chunk)[:8192]
            if not chunk:
                watched = [each for each in watched if each != reports]
            while b"\n" in unread:
                line, unread = unread.split(b"\n", 1)
                what, number = line.split()
                if what != b"child-pid":
                    if what == b"exit-code" and status is not None:
                        os.write(status, b'{"exit-code": %d}\n' % int(number))
                    return int(number) & 0xFF
                if int(number) in _descendants():
                    if status is not None and not begun:
                        os.write(status, b'{"child-pid": %d}\n' % int(number))
                    begun = True
                elif os.path.exists(f"/proc/{int(number)}"):  # noqa: PTH110
                    return ENDED_OTHERWISE  # else it has ended since
        elif ready:
            return ENDED_OTHERWISE


def _end_all(proot: int) -> None:
    """Kill all descendants of this process until none is left."""
    tries = 0
    while True:
        tries += 1
        for pid in _descendants():
            if pid != proot or tries > KILLS_BEFORE_PROOT:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        # A killed process ends in a moment, and may leave children to this process.
        select.select([], [], [], 0.002)


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as stream:  # noqa: PTH123
                    parent = int(stream.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(name))
    found, todo = [], [os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


if __name__ == "__main__":
    main()
