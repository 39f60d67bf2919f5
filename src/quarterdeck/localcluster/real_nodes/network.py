"""The network namespaces: the supervisor's own, with the bridge, and the cable of each node."""

import os
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.ports import LOOPBACK
from quarterdeck.localcluster.real_nodes import libc
from quarterdeck.localcluster.real_nodes.addresses import (
    BRIDGE,
    CONTROL_PLANE,
    PREFIX_LENGTH,
    RealNode,
)

NAMESPACE = "/proc/self/ns/net"

# Few users of this machine can connect at the same time; the relay accepts at once.
_BACKLOG = 128


def listen_on_machine(ports: Sequence[int]) -> list[socket.socket]:
    """Sockets that listen on the machine's loopback; they stay there when this process leaves."""
    sockets = []
    for port in ports:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(_BACKLOG)
        sockets.append(listener)
    return sockets


def leave_machine(nodes: Sequence[RealNode]) -> None:
    """Move this thread, and what it starts, to a new network namespace with a bridge for nodes."""
    libc.unshare(libc.CLONE_NEWNET)
    for command in bridge_commands(nodes):
        run(command)


def bridge_commands(nodes: Sequence[RealNode]) -> list[list[str]]:
    """The commands that set up the control plane's side."""
    return [
        ["ip", "link", "set", "lo", "up"],
        ["ip", "link", "add", BRIDGE, "type", "bridge"],
        ["ip", "address", "add", f"{CONTROL_PLANE}/{PREFIX_LENGTH}", "dev", BRIDGE],
        ["ip", "link", "set", BRIDGE, "up"],
        *(["ip", "route", "add", node.pods, "via", node.address] for node in nodes),
    ]


def connect_node(node: RealNode, others: Sequence[RealNode], control_plane: int) -> None:
    """Connect this process's network namespace to the bridge; `control_plane` is a descriptor."""
    there = ["nsenter", f"--net=/proc/self/fd/{control_plane}"]
    for command in outer_commands(node, os.getpid()):
        run([*there, *command], keep=control_plane, may_fail=command[2] == "delete")
    for command in inner_commands(node, others):
        run(command)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def outer_commands(node: RealNode, pid: int) -> list[list[str]]:
    """The commands in the control plane's namespace that give a node's process its cable."""
    peer = ["peer", "name", "eth0", "netns", str(pid)]
    return [
        # The earlier cable of a killed node goes with its namespace, a moment later.
        ["ip", "link", "delete", node.port],
        ["ip", "link", "add", node.port, "type", "veth", *peer],
        ["ip", "link", "set", node.port, "master", BRIDGE, "up"],
    ]


def inner_commands(node: RealNode, others: Sequence[RealNode]) -> list[list[str]]:
    """The commands in a node's namespace: its address, and the ways to the other nodes' pods."""
    return [
        ["ip", "link", "set", "lo", "up"],
        ["ip", "address", "add", f"{node.address}/{PREFIX_LENGTH}", "dev", "eth0"],
        ["ip", "link", "set", "eth0", "up"],
        # Nothing is forwarded there. A process of the node that connects to a Service needs some
        # route before kube-proxy's rules give it the real destination.
        ["ip", "route", "add", "default", "via", CONTROL_PLANE],
        *(["ip", "route", "add", one.pods, "via", one.address] for one in others),
    ]


def run(command: Sequence[str], *, keep: int | None = None, may_fail: bool = False) -> None:
    """Run a command; LocalClusterError with its message if it fails."""
    descriptors = () if keep is None else (keep,)
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, pass_fds=descriptors
    )
    if done.returncode != 0 and not may_fail:
        raise LocalClusterError(f"{' '.join(command)} failed: {done.stderr.strip()}")
