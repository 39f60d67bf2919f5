"""Pods that run on the node `this-machine`, as tests make them."""

import shutil
import socket
from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.sandbox.bubblewrap import NoNamespaces
from quarterdeck.localcluster.node.sandbox.ways import Way, find_way


def has_namespaces() -> bool:
    """Whether pods run in namespaces here; if not, they run in proot, or not at all."""
    try:
        return find_way() is Way.NAMESPACES
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


def container(script: str, name: str = "main", **more: Any) -> dict[str, Any]:
    """A container that runs a shell script."""
    return {"name": name, "image": "quarterdeck", "command": ["sh", "-c", script], **more}


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> Object:
    """A pod of these containers, with five seconds to end unless it is said otherwise."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 5, "containers": list(containers), **spec},
    }
