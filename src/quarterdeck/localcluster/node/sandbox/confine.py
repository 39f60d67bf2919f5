"""Drops its own rights and execs proot: `python -I -S confine.py FD`.

It is a separate program, which imports no other module of ours. All processes of the container
inherit the restrictions: no capabilities, only the files in its Landlock rules, no signals to
processes outside, no system calls that proot does not know, and no set-user-ID modes.
"""

import ctypes
import errno
import marshal
import os
import signal
import stat
import struct
import sys
from typing import Any, NoReturn

CANNOT_CONFINE = 128

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 38
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION = 0x20080522
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
RULE_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = (1 << bit for bit in range(4))
CHANGE_NAMES = sum(1 << bit for bit in range(4, 13))
"""The rights to create and to remove files of all kinds."""
REFER, TRUNCATE = 1 << 13, 1 << 14
SCOPE_SIGNALS = 1 << 1
READ = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | READ_FILE | WRITE_FILE | TRUNCATE

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
FIRST_UNKNOWN = 463
"""System calls from this number on are newer than our list."""
YOUNG = (*range(425, 434), 435, 437, 439, 442, 443, 452, *range(457, 462))
"""io_uring, open_tree to fspick, clone3, openat2, faccessat2, mount_setattr, quotactl_fd,
fchmodat2, statmount to lsm_list_modules: these have the same numbers everywhere."""
SET_MODE = {
    # chmod, fchmod, fchmodat, and which of their arguments the mode is
    "x86_64": ((90, 1), (91, 1), (268, 2)),
    "aarch64": ((52, 1), (53, 2)),
}
SETS_OWNER = 0o6000
UNKNOWN_TO_PROOT = {
    # name_to_handle_at, open_by_handle_at, execveat, statx
    "x86_64": (0xC000003E, (303, 304, 322, 332, *YOUNG)),
    "aarch64": (0xC00000B7, (264, 265, 281, 291, *YOUNG)),
}
"""The architecture's number, and the system calls whose paths proot does not translate. They fail
with ENOSYS, so that programs use older calls."""

LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> NoReturn:
    """Drop the rights, and exec the order's command."""
    os.lseek(int(sys.argv[1]), 0, os.SEEK_SET)
    with open(int(sys.argv[1]), "rb") as stream:  # noqa: PTH123  # a descriptor
        order = marshal.load(stream)  # noqa: S302  # the agent wrote it
    _check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))  # with the keeper
    for capability in range(64):
        # A process that may not drop it cannot gain it either.
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    _check(LIBC.capset(header, (ctypes.c_uint32 * 6)()))
    _check(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    _restrict_files(order["readable"], order["writable"])
    _hide_system_calls()
    os.execve(order["command"][0], order["command"], order["variables"])  # noqa: S606


def _restrict_files(readable: list[Any], writable: list[Any]) -> None:
    """Allow reads and writes of these files only, as far as the kernel supports it."""
    version = LIBC.syscall(CREATE_RULESET, None, 0, 1)
    write = WRITE_FILE | CHANGE_NAMES
    write |= (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    rules = -1
    if version >= 1:
        scope = SCOPE_SIGNALS if version >= 6 else 0
        wanted = struct.pack("QQQ", READ | write, 0, scope)[: 24 if version >= 6 else 8]
        rules = LIBC.syscall(CREATE_RULESET, wanted, len(wanted), 0)
    for allowed, rights in [
        *((each, READ) for each in readable),
        *((each, READ | write) for each in writable),
    ]:
        _allow(rules, allowed, rights)
    if rules >= 0:
        _check(LIBC.syscall(RESTRICT_SELF, rules, 0))
        os.close(rules)


def _allow(rules: int, allowed: tuple[str, tuple[int, int] | None, str], rights: int) -> None:
    """Add a rule for a path, if its file is still the one that was checked."""
    path, identity, seen_at = allowed
    try:
        opened = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    except OSError as error:
        if identity is None:  # It was removed after it was listed.
            return
        raise OSError(error.errno, f"{seen_at}: {error.strerror}") from None
    found = os.fstat(opened)
    if identity is not None and (found.st_dev, found.st_ino) != tuple(identity):
        raise OSError(errno.ESTALE, f"{seen_at}: its source was replaced while it was mounted")
    if rules >= 0 and not stat.S_ISLNK(found.st_mode):
        if not stat.S_ISDIR(found.st_mode):
            rights &= OF_FILES
        rule = struct.pack("=Qi", rights, opened)
        _check(LIBC.syscall(ADD_RULE, rules, RULE_PATH_BENEATH, rule, 0))
    os.close(opened)


def _hide_system_calls() -> None:
    """Let the system calls that proot does not know fail with ENOSYS."""
    architecture, numbers = UNKNOWN_TO_PROOT[os.uname().machine]
    load, equal, at_least, any_of, give = 0x20, 0x15, 0x35, 0x45, 0x06
    refuse = ERRNO | errno.ENOSYS
    program = [
        (load, 0, 0, 4),
        (equal, 1, 0, architecture),
        (give, 0, 0, refuse),
        (load, 0, 0, 0),
        (at_least, 0, 1, FIRST_UNKNOWN),
        (give, 0, 0, refuse),
    ]
    for number in numbers:
        program += [(equal, 0, 1, number), (give, 0, 0, refuse)]
    # Landlock knows no modes: a program of the machine's that gets these would run as its owner.
    for number, argument in SET_MODE[os.uname().machine]:
        program += [
            (equal, 0, 4, number),
            (load, 0, 0, 16 + 8 * argument),
            (any_of, 0, 1, SETS_OWNER),
            (give, 0, 0, ERRNO | errno.EPERM),
            (give, 0, 0, ALLOW),
        ]
    program.append((give, 0, 0, ALLOW))
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    whole = struct.pack("HxxxxxxP", len(program), ctypes.addressof(filters))
    _check(LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whole, 0, 0))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # One line instead of a traceback.
        os.write(2, f"{getattr(error, 'strerror', None) or error}\n".encode(errors="replace"))
        os._exit(CANNOT_CONFINE)
