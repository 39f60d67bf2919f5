"""Starts bubblewrap or proot's keeper, to start a container's process or to enter it.

Both get an empty environment; the pod's data comes by file descriptors only.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import msgspec

from quarterdeck.localcluster.node.sandbox.arguments import (
    Sandbox,
    behind_a_read_only_machine,
    has_mounts_in_volumes,
    options,
)
from quarterdeck.localcluster.node.sandbox.bubblewrap import bubblewrap
from quarterdeck.localcluster.node.sandbox.mounts import Bind
from quarterdeck.localcluster.node.sandbox.orders import (
    inside,
    open_order,
    order_to_become,
    order_to_begin,
    order_to_enter,
)
from quarterdeck.localcluster.node.sandbox.proot import KeeperOrders, create_scratch


class PipeEnds(msgspec.Struct, frozen=True):
    """The ends of pipes to which a program writes."""

    status: int
    out: int
    err: int


class CommandLine(msgspec.Struct, frozen=True):
    """A command line, and the descriptors that it inherits."""

    command: list[str]
    descriptors: list[int]


def start(sandbox: Sandbox, ends: PipeEnds, gate: int | None) -> "subprocess.Popen[bytes]":
    """Start a container; after its mounts it waits for a byte from `gate`, if there is one."""
    in_proot = sandbox.proot is not None
    with _proot(sandbox, ends) if in_proot else _bubblewrap(sandbox, ends, gate) as command_line:
        return subprocess.Popen(
            command_line.command,
            stdin=subprocess.DEVNULL,
            stdout=ends.out,
            stderr=ends.err,
            pass_fds=[ends.status, *command_line.descriptors],
            # The container's own variables come by --args or by the order.
            env={},
            start_new_session=in_proot,  # Bubblewrap starts its own.
        )


@contextmanager
def entering(
    sandbox: Sandbox, pid: int, descriptor: int | None, command: list[str]
) -> Iterator[CommandLine]:
    """The command line that runs a command in a container, whose process has this pidfd."""
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
            yield CommandLine(orders.command, orders.descriptors)
        finally:
            orders.close()
        return
    if descriptor is None:
        raise ProcessLookupError("the container does not run")
    order = open_order(
        order_to_enter(
            (pid, descriptor),
            command,
            root=sandbox.root,
            user=sandbox.user,
            variables=sandbox.variables,
            whole_group=True,
        )
    )
    try:
        yield CommandLine(inside(order), [order, descriptor])
    finally:
        os.close(order)


def checks_mounts(sandbox: Sandbox) -> bool:
    """Whether the mounts are checked before the program runs.

    In proot nothing is mounted: `confine` opens and checks the files.
    """
    return sandbox.proot is None and any(
        isinstance(each, Bind) and each.opened for each in sandbox.mounts
    )


@contextmanager
def _bubblewrap(sandbox: Sandbox, ends: PipeEnds, gate: int | None) -> Iterator[CommandLine]:
    with ExitStack() as handed:
        descriptors = [] if gate is None else [gate]

        def hand(data: bytes) -> int:
            descriptors.append(open_order(data))
            handed.callback(os.close, descriptors[-1])
            os.lseek(descriptors[-1], 0, os.SEEK_SET)
            return descriptors[-1]

        around = []
        if has_mounts_in_volumes(sandbox):
            outer, sandbox = behind_a_read_only_machine(sandbox)
            around = [bubblewrap(), "--args", str(hand(outer)), "--"]
        command = list(sandbox.command)
        if sandbox.user:
            command = inside(hand(order_to_become(sandbox)))
        elif sandbox.working_directory != "/":
            command = inside(hand(order_to_begin(sandbox)))
        yield CommandLine(
            [
                *around,
                *(bubblewrap(), "--args", str(hand(options(sandbox)))),
                *(() if gate is None else ("--block-fd", str(gate))),
                *("--json-status-fd", str(ends.status), "--", *command),
            ],
            descriptors,
        )


@contextmanager
def _proot(sandbox: Sandbox, ends: PipeEnds) -> Iterator[CommandLine]:
    if sandbox.proot is None:
        raise ValueError("the sandbox has no view for proot")
    create_scratch(sandbox.proot)
    orders = KeeperOrders(
        sandbox.proot,
        sandbox.command,
        sandbox.variables,
        sandbox.working_directory,
        parent=os.getpid(),
        status=ends.status,
    )
    try:
        yield CommandLine(orders.command, orders.descriptors)
    finally:
        orders.close()
