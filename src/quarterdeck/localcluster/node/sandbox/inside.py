"""Runs a command in a container with the container's rights: `python -I -S inside.py FD`.

It is a separate program, which imports no other module of ours. The agent starts it with an empty
environment, and passes an order by the descriptor FD. It enters a running container (an exec probe,
`quarterdeck local exec`), or moves from the machine's view to the container's and changes its user
(the start of a container with a user or groups), or changes to the working directory. In proot it
is the first process, and reports the command's process and exit code to the keeper.

It executes and loads nothing of the pod while it has more rights than the pod: the pod's volumes
may cover any library, and its variables may name libraries for the loader. So there is no program
in between: this process drops its own rights, and then execs the command with the pod's variables.
"""

import ctypes
import errno
import marshal
import os
import signal
import sys
import time
from typing import Any, NoReturn

CANNOT_ENTER = 128
NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""The exit codes of shells for a command that cannot be run."""

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
CAPABILITY_VERSION = 0x20080522

LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> NoReturn:
    """Carry out the order."""
    order = marshal.loads(_take(int(sys.argv[1])))  # noqa: S302  # the agent wrote it
    if order["report"] is not None:
        _run_in_proot(order)
    # Until the exec of the command, no process of the pod may trace this one.
    _check(LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
    if order["pid"]:
        variables = _enter(order)
        child = os.fork()  # Only children are in the entered PID namespace.
        if child:
            _end_when_told(child, order["whole_group"])
            os._exit(_wait(child))
        if order["whole_group"]:
            os.setpgid(0, 0)
    else:
        variables = order["variables"]
    # The directory may be named through /proc/self: there must be no way out by then.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if order["root"] is not None:
        os.chroot(order["root"])
    if not order["pid"]:
        os.chdir("/")
        try:
            os.chdir(order["directory"])
        except OSError as error:
            _fail(f"workingDir {os.fsdecode(order['directory'])}: {error.strerror}", CANNOT_ENTER)
    if order["pid"] or order["root"] is not None:
        _drop_rights(order["user"])
    if order["pid"]:
        _check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    _execute(order["command"], variables)


def _run_in_proot(order: dict[str, Any]) -> NoReturn:
    """Run the command, and report its exit code; proot's own is that of the last process."""
    failed, failure = os.pipe()
    _check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    child = os.fork()
    if child == 0:
        try:
            _check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
            os.dup2(failure, 3, inheritable=False)
            os.closerange(4, os.sysconf("SC_OPEN_MAX"))
            os.chdir(order["directory"])
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
                signal.signal(number, signal.SIG_DFL)
            _execute(order["command"], order["variables"], report=3)
        except Exception as error:  # Also for an invalid argument.
            os.write(3, b"%d" % CANNOT_ENTER)
            _fail(str(error), CANNOT_ENTER)
    os.close(failure)
    report = order["report"]
    if failed_with := os.read(failed, 16):
        os.waitpid(child, 0)  # It still writes its error.
        os.write(report, b"failed %s\n" % failed_with)
        os._exit(int(failed_with))
    os.write(report, b"child-pid %d\n" % child)
    code = _wait(child)
    os.write(report, b"exit-code %d\n" % code)
    os._exit(code)


def _enter(order: dict[str, Any]) -> dict[bytes, bytes]:
    """Join the namespaces of a process, and return the command's variables."""
    at = f"/proc/{order['pid']}"
    with open(f"{at}/status") as stream:  # noqa: PTH123  # pathlib would take longer to load
        rights = next(line for line in stream if line.startswith("CapEff:")).split()[1]
    if int(rights, 16):
        _fail("the container is not set up yet", CANNOT_ENTER)
    variables = order["variables"]
    if variables is None:
        words = _environment(at).split(b"\0")
        variables = dict(word.split(b"=", 1) for word in words if b"=" in word)
    spaces = [os.open(f"{at}/ns/{name}", os.O_RDONLY) for name in order["namespaces"]]
    root, directory = (os.open(f"{at}/{name}", os.O_PATH) for name in ("root", "cwd"))
    # All of these are of the container: its process has not made room for another of its number.
    signal.pidfd_send_signal(order["process"], 0)
    for space in spaces:
        _check(LIBC.setns(space, 0))
    os.fchdir(root)
    os.chroot(".")
    os.fchdir(directory)
    return dict(variables)


def _environment(at: str) -> bytes:
    """The environment of a process; see `variables_of` in entry.py for why it may need tries."""
    for _ in range(50):
        with open(f"{at}/environ", "rb") as stream:  # noqa: PTH123
            if words := stream.read():
                return words
        time.sleep(0.01)
    return b""


def _drop_rights(user: tuple[int, int, list[int]] | None) -> None:
    """Become the user, with no capabilities and no way to gain any."""
    for capability in range(64):
        if LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            if ctypes.get_errno() == errno.EINVAL:  # The kernel has no such capability.
                break
            _check(-1)
    if user is not None:
        uid, gid, groups = user
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    _check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    _check(LIBC.capset(header, (ctypes.c_uint32 * 6)()))


def _execute(
    command: list[bytes], variables: dict[bytes, bytes], report: int | None = None
) -> NoReturn:
    """Exec the command, found by the container's own PATH."""
    name = command[0]
    places = [b""] if b"/" in name else variables.get(b"PATH", b"/usr/bin:/bin").split(b":")
    failure = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    for place in places:
        path = os.path.join(place, name)  # noqa: PTH118  # bytes
        try:
            os.execve(path, command, variables)  # noqa: S606
        except OSError as error:
            if error.errno == errno.ENOEXEC:  # A script without an interpreter line.
                os.execve("/bin/sh", [b"sh", path, *command[1:]], variables)  # noqa: S606
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                failure = error
    code = NOT_FOUND if failure.errno == errno.ENOENT else NOT_EXECUTABLE
    if report is not None:
        os.write(report, b"%d" % code)
    _fail(f"{os.fsdecode(name)}: {failure.strerror}", code)


def _end_when_told(child: int, whole_group: bool) -> None:
    """End the command at SIGTERM, and wait for it: the container's first process may not."""

    def end(*_: object) -> None:
        for kill in (os.killpg, os.kill) if whole_group else (os.kill,):
            try:
                kill(child, signal.SIGKILL)
            except ProcessLookupError:  # it has no group of its own yet
                continue

    signal.signal(signal.SIGTERM, end)


def _wait(child: int) -> int:
    """The exit code of the command; SIGINT from a terminal is meant for it, not for us."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _take(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb") as stream:
        return stream.read()


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _fail(why: str, code: int) -> NoReturn:
    os.write(2, f"{why}\n".encode(errors="replace"))
    os._exit(code)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # A traceback would read source files of the pod.
        _fail(str(error), CANNOT_ENTER)
