"""A real Kubernetes control plane on this machine: running it, and finding its binaries.

`ControlPlane` runs the components as child processes; the supervisor in `supervisor` keeps one
alive behind `quarterdeck local up`; `quarterdeck.testing` gives one to each test worker.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quarterdeck.localcluster.components import COMPONENTS, Component
    from quarterdeck.localcluster.controlplane import ControlPlane
    from quarterdeck.localcluster.errors import LocalClusterError

__all__ = ["COMPONENTS", "Component", "ControlPlane", "LocalClusterError"]

_HOMES = {
    "COMPONENTS": "components",
    "Component": "components",
    "ControlPlane": "controlplane",
    "LocalClusterError": "errors",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for only now: the command line and pytest start without it."""
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
