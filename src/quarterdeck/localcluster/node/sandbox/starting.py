"""The programs that start a container's process and that enter it: bubblewrap, or proot's keeper.

Both are started without variables, and with nothing of the pod's but what they are handed by
descriptors.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import msgspec

from quarterdeck.localcluster.node.sandbox.arguments import Sandbox, options
from quarterdeck.localcluster.node.sandbox.bubblewrap import bubblewrap
from quarterdeck.localcluster.node.sandbox.mounts import Bind
from quarterdeck.localcluster.node.sandbox.orders import (
    inside,
    open_order,
    order_to_become,
    order_to_enter,
)
from quarterdeck.localcluster.node.sandbox.proot import KeeperOrders, lay_out


class Ends(msgspec.Struct, frozen=True):
    """The ends of pipes that a program writes to."""

    status: int
    out: int
    err: int


class Words(msgspec.Struct, frozen=True):
    """A command line, and the descriptors that go with it."""

    command: list[str]
    descriptors: list[int]


def start(sandbox: Sandbox, ends: Ends, gate: int | None) -> "subprocess.Popen[bytes]":
    """Start a container; it waits at the gate, if there is one, when all mounts are made."""
    in_proot = sandbox.proot is not None
    with _proot(sandbox, ends) if in_proot else _bubblewrap(sandbox, ends, gate) as words:
        return subprocess.Popen(
            words.command,
            stdin=subprocess.DEVNULL,
            stdout=ends.out,
            stderr=ends.err,
            pass_fds=[ends.status, *words.descriptors],
            # The container's own variables come by --args, or with the order.
            env={},
            start_new_session=in_proot,  # bubblewrap makes one
        )


@contextmanager
def entering(sandbox: Sandbox, pid: int, command: list[str]) -> Iterator[Words]:
    """What runs a command in a container, beside its process."""
    if sandbox.proot is not None:
        orders = KeeperOrders(
            sandbox.proot,
            command,
            sandbox.variables,
            sandbox.working_directory,
            parent=os.getpid(),
            beside=pid,
        )
        try:
            yield Words(orders.command, orders.descriptors)
        finally:
            orders.close()
        return
    order = open_order(
        order_to_enter(
            pid, command, root=sandbox.root, user=sandbox.user, variables=sandbox.variables
        )
    )
    try:
        yield Words(inside(order), [order])
    finally:
        os.close(order)


def is_looked_at(sandbox: Sandbox) -> bool:
    """Whether the mounts are looked at before the program runs.

    In proot nothing is mounted: what may be used is opened and looked at by `confine`.
    """
    return sandbox.proot is None and any(
        isinstance(each, Bind) and each.opened for each in sandbox.mounts
    )


@contextmanager
def _bubblewrap(sandbox: Sandbox, ends: Ends, gate: int | None) -> Iterator[Words]:
    with ExitStack() as handed:
        arguments = open_order(options(sandbox))
        handed.callback(os.close, arguments)
        os.lseek(arguments, 0, os.SEEK_SET)
        command, order = list(sandbox.command), []
        if sandbox.user:
            order = [open_order(order_to_become(sandbox))]
            handed.callback(os.close, order[0])
            command = inside(order[0])
        yield Words(
            [
                *(bubblewrap(), "--args", str(arguments)),
                *(() if gate is None else ("--block-fd", str(gate))),
                *("--json-status-fd", str(ends.status), "--", *command),
            ],
            [arguments, *order, *(() if gate is None else (gate,))],
        )


@contextmanager
def _proot(sandbox: Sandbox, ends: Ends) -> Iterator[Words]:
    if sandbox.proot is None:
        raise ValueError("the sandbox has no view for proot")
    lay_out(sandbox.proot)
    orders = KeeperOrders(
        sandbox.proot,
        sandbox.command,
        sandbox.variables,
        sandbox.working_directory,
        parent=os.getpid(),
        status=ends.status,
    )
    try:
        yield Words(orders.command, orders.descriptors)
    finally:
        orders.close()
