"""Runs a command on a kernel that seems to have no Landlock: COMMAND...

A program of its own. Its filter answers that there are no such system calls, as an older kernel
does.
"""

import ctypes
import errno
import os
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
CREATE_RULESET, RESTRICT_SELF = 444, 446

if __name__ == "__main__":
    load, at_least, more, give = 0x20, 0x35, 0x25, 0x06
    program = [
        (load, 0, 0, 0),
        (at_least, 0, 2, CREATE_RULESET),
        (more, 1, 0, RESTRICT_SELF),
        (give, 0, 0, 0x00050000 | errno.ENOSYS),
        (give, 0, 0, 0x7FFF0000),
    ]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    whole = struct.pack("HxxxxxxP", len(program), ctypes.addressof(filters))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, whole, 0, 0) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606
