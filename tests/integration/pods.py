"""Whether and how pods run on the node `this-machine` here."""

import shutil
import socket

import pytest

from quarterdeck.localcluster.node.sandbox.bubblewrap import NoNamespaces
from quarterdeck.localcluster.node.sandbox.isolation import Isolation, find_isolation


def has_namespaces() -> bool:
    """Whether pods run in namespaces here; if not, they run in proot, or not at all."""
    try:
        return find_isolation() is Isolation.NAMESPACES
    except NoNamespaces:
        return False


NAMESPACES = has_namespaces()
READ_ONLY = "Read-only file system" if NAMESPACES else "Permission denied"
"""What a process is told that writes where it may not."""


def host_name(pod_name: str) -> str:
    """The host name that a pod's containers have."""
    return pod_name if NAMESPACES else socket.gethostname()


RUN_HERE = NAMESPACES or shutil.which("proot") is not None
"""Whether pods can run as processes at all."""

needs_bubblewrap = pytest.mark.skipif(not RUN_HERE, reason="bubblewrap and proot are missing")
"""For tests whose pods run as processes."""

needs_namespaces = pytest.mark.skipif(
    not NAMESPACES, reason="no namespaces may be made here: proot cannot keep processes apart"
)
"""For tests of what only namespaces give."""
