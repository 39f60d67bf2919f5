"""Pods that run on the node `this-machine`, as tests make them."""

import shutil
from typing import Any

import pytest

from quarterdeck.api.meta import Object

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing")
"""For tests whose pods run as processes."""


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
