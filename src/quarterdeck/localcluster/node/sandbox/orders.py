"""The orders for the program `inside`: a command, its container and its user.

An order is passed by a file descriptor, because all users can read a command line, and variables
may contain Secrets.
"""

import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from quarterdeck.localcluster.node.sandbox.arguments import NEW_ROOT, Sandbox, User

NAMESPACES = ("ipc", "uts", "pid", "mnt")
"""The namespaces of a container; without root it has a user namespace too."""


def open_order(order: bytes) -> int:
    """An inheritable descriptor of the order."""
    descriptor = os.memfd_create("order")
    os.write(descriptor, order)
    os.set_inheritable(descriptor, True)
    return descriptor


def inside(descriptor: int) -> list[str]:
    """The command line of the program that carries out an order."""
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("inside.py")), str(descriptor)]


def order_to_become(sandbox: Sandbox) -> bytes:
    """The order that starts a container's command as its user."""
    return _order(
        sandbox.command,
        sandbox.user,
        sandbox.variables,
        root=NEW_ROOT,
        directory=os.fsencode(sandbox.working_directory),
    )


def order_to_begin(sandbox: Sandbox) -> bytes:
    """The order that starts a container's command in its directory, without any rights.

    bubblewrap would change to it while it holds descriptors of the machine's files, and a directory
    may be named through /proc/self/fd.
    """
    directory = os.fsencode(sandbox.working_directory)
    return _order(sandbox.command, None, sandbox.variables, directory=directory)


def order_to_enter(
    process: tuple[int, int],
    command: Sequence[str],
    *,
    root: bool,
    user: User | None,
    variables: Mapping[str, str] | None,
    whole_group: bool = False,
) -> bytes:
    """The order that runs a command in the container of a process, with its rights.

    The process is given by its PID and a pidfd. If `variables` is None, the command gets those of
    that process. SIGTERM ends the command, and with `whole_group` its children too.
    """
    return _order(
        command,
        user,
        variables,
        pid=process[0],
        process=process[1],
        namespaces=NAMESPACES if root else ("user", *NAMESPACES),
        whole_group=whole_group,
    )


def order_in_proot(
    command: Sequence[str],
    variables: Mapping[str, str] | Mapping[bytes, bytes],
    directory: str,
    *,
    report: int,
) -> bytes:
    """The order that runs a command in proot, and reports its process and exit code."""
    return _order(command, None, variables, report=report, directory=os.fsencode(directory))


def _order(
    command: Sequence[str],
    user: User | None,
    variables: Mapping[str, str] | Mapping[bytes, bytes] | None,
    **more: object,
) -> bytes:
    return marshal.dumps(
        {
            "pid": None,
            "report": None,
            "root": None,
            "command": [os.fsencode(word) for word in command],
            "user": (user.uid, user.gid, list(user.groups)) if user else None,
            "variables": None
            if variables is None
            else {os.fsencode(name): os.fsencode(value) for name, value in variables.items()},
            **more,
        }
    )
