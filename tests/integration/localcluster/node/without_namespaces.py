"""Runs a command where no namespaces may be made, as in a plain container: USER COMMAND...

A program of its own, for root. It makes a user namespace whose own limit of user namespaces is 0
(nobody else's is touched), and drops what a container's root has not: CAP_SYS_ADMIN, and as another
user every capability. It exits with 77 where that cannot be done.
"""

import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000
PR_CAPBSET_DROP, CAP_SYS_ADMIN = 24, 21
CAPABILITY_VERSION = 0x20080522
CANNOT = 77

LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Run the command in a child, and exit as it does."""
    user, command = int(sys.argv[1]), sys.argv[2:]
    made, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        if LIBC.unshare(CLONE_NEWUSER) != 0:
            os._exit(CANNOT)
        os.write(made[1], b"x")
        os.read(mapped[0], 1)
        try:
            with open("/proc/sys/user/max_user_namespaces", "w") as limit:  # noqa: PTH123
                limit.write("0")
        except OSError:
            os._exit(CANNOT)
        become(user)
        os.execvp(command[0], command)  # noqa: S606
    os.close(made[1])
    if os.read(made[0], 1):
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{child}/{name}", "w") as file:  # noqa: PTH123
                file.write("0 0 65536")
        os.write(mapped[1], b"x")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def become(user: int) -> None:
    """The user, and for root what Docker leaves it of the capabilities, and less."""
    os.setgroups([])
    if user:
        os.setgid(user)
        os.setuid(user)
        return
    LIBC.prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0)
    header, sets = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    if LIBC.capget(header, sets) != 0:
        os._exit(CANNOT)
    for each in range(3):  # effective, permitted, inheritable: the first 32 capabilities
        sets[each] &= ~(1 << CAP_SYS_ADMIN)
    if LIBC.capset(header, sets) != 0:
        os._exit(CANNOT)


if __name__ == "__main__":
    main()
