"""Removes what a killed cluster with real nodes has left outside its state directory."""

import os

from quarterdeck.localcluster.real_nodes import cgroups
from quarterdeck.localcluster.state import Layout


def remove_leftovers(layout: Layout) -> None:
    """Remove the cgroups of the nodes; everything else has ended with the supervisor."""
    if (layout.root / "real-nodes").exists() and os.geteuid() == 0:
        cgroups.remove(cgroups.prefix_of(layout.root))
