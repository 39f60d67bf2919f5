"""Chooses how pods run on this machine: in namespaces, or in proot if these are not allowed."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from enum import Enum
from functools import cache
from pathlib import Path, PurePosixPath

from quarterdeck.localcluster.node.sandbox.bubblewrap import NoNamespaces, check_bubblewrap
from quarterdeck.localcluster.node.sandbox.confine import UNKNOWN_TO_PROOT
from quarterdeck.localcluster.node.sandbox.host import RealHost
from quarterdeck.localcluster.node.sandbox.mounts import View, plan_mounts
from quarterdeck.localcluster.node.sandbox.proot import KeeperOrders, create_scratch
from quarterdeck.localcluster.node.sandbox.proot_view import proot_view

LANDLOCK_CREATE_RULESET, VERSION = 444, 1
NEEDED_IN_PROOT = tuple(
    PurePosixPath(path)
    for path in (sys.prefix, sys.base_prefix, os.path.realpath(sys.prefix), Path(__file__).parent)
)
"""The paths of the machine that a container's first process in proot needs."""


class Isolation(Enum):
    """How a pod's processes are isolated from the machine."""

    NAMESPACES = "bubblewrap"
    PROOT = "proot"


@cache
def find_isolation() -> Isolation:
    """The best isolation that works on this machine; raises one line if none does."""
    try:
        check_bubblewrap()
    except NoNamespaces as no_namespaces:
        if shutil.which("proot") is None:
            raise NoNamespaces(
                f"{no_namespaces}; or install proot, which does without: sudo apt-get install proot"
            ) from None
        if fault := _fault_of_proot():
            raise NoNamespaces(f"{no_namespaces}; nor does proot work ({fault})") from None
        return Isolation.PROOT
    return Isolation.NAMESPACES


def proot_warning() -> str:
    """The limits of proot for its user, in one line."""
    line = (
        "bubblewrap may make no namespaces here, so pods run in proot: slower, without process, "
        "IPC and host name of their own, all as you"
    )
    if landlock_version() < 1:
        line += "; and they can write what you can write (the kernel offers no Landlock)"
    return f"{line} (docs/local-cluster.md)"


def landlock_version() -> int:
    """The kernel's version of Landlock; less than one if there is none."""
    return int(ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, VERSION))


def _fault_of_proot() -> str:
    """Why a process cannot run in proot; empty if it can."""
    if os.uname().machine not in UNKNOWN_TO_PROOT:
        return f"it is not tried on {os.uname().machine}"
    with tempfile.TemporaryDirectory(prefix="quarterdeck-proot-") as directory:
        host = RealHost()
        mounts = plan_mounts(View(kept=NEEDED_IN_PROOT), host, open_root=True)
        view = proot_view(mounts, f"{os.path.realpath(directory)}/view", host)
        try:
            create_scratch(view)
        except OSError as error:
            return str(error)
        orders = KeeperOrders(view, ["/bin/true"], {}, "/", parent=os.getpid())
        try:
            tried = subprocess.run(
                orders.command,
                pass_fds=orders.descriptors,
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            orders.close()
    errors = " ".join(tried.stderr.split())
    return "" if tried.returncode == 0 else errors or f"exit code {tried.returncode}"
