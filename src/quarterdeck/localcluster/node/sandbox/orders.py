"""What the program `inside` is told: which command, in which container, as whom.

An order is handed over by a file descriptor, because a command line is for all users to read and
the variables may hold Secrets.
"""

import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from quarterdeck.localcluster.node.sandbox.arguments import BESIDE, Sandbox, User

NAMESPACES = ("ipc", "uts", "pid", "mnt")
"""What a container has of its own; without root a user namespace besides."""


def open_order(order: bytes) -> int:
    """A descriptor of the order, for a program that inherits it."""
    descriptor = os.memfd_create("order")
    os.write(descriptor, order)
    os.set_inheritable(descriptor, True)
    return descriptor


def inside(descriptor: int) -> list[str]:
    """The command line of the program that carries out an order; it needs no variables."""
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("inside.py")), str(descriptor)]


def order_to_become(sandbox: Sandbox) -> bytes:
    """The order that starts a container's command as its user."""
    return _order(
        sandbox.command,
        sandbox.user,
        sandbox.variables,
        root=BESIDE,
        directory=os.fsencode(sandbox.working_directory),
    )


def order_to_enter(
    pid: int,
    command: Sequence[str],
    *,
    root: bool,
    user: User | None,
    variables: Mapping[str, str] | None,
) -> bytes:
    """The order that runs a command in a container, beside its process `pid`, with its rights.

    Without variables it gets those of that process.
    """
    namespaces = NAMESPACES if root else ("user", *NAMESPACES)
    return _order(command, user, variables, pid=pid, namespaces=namespaces)


def order_in_proot(
    command: Sequence[str],
    variables: Mapping[str, str] | Mapping[bytes, bytes],
    directory: str,
    *,
    report: int,
) -> bytes:
    """The order that runs a command as the first process in proot; what comes of it is reported."""
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
            "command": [os.fsencode(word) for word in command],
            "user": (user.uid, user.gid, list(user.groups)) if user else None,
            "variables": None
            if variables is None
            else {os.fsencode(name): os.fsencode(value) for name, value in variables.items()},
            **more,
        }
    )
