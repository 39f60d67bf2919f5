"""A real Kubernetes control plane on this machine, and the programs for it.

`ControlPlane` runs the components as child processes. `supervisor` keeps a control plane running
for `quarterdeck local up`. `quarterdeck.testing` runs one for each test worker.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quarterdeck.localcluster.components import COMPONENTS, Component
    from quarterdeck.localcluster.controlplane import ControlPlane
    from quarterdeck.localcluster.errors import LocalClusterError

__all__ = ["COMPONENTS", "Component", "ControlPlane", "LocalClusterError"]

_MODULES = {
    "COMPONENTS": "components",
    "Component": "components",
    "ControlPlane": "controlplane",
    "LocalClusterError": "errors",
}


def __getattr__(name: str) -> Any:
    """Import a name at its first use, so that the command line and pytest start quickly."""
    import importlib

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
