"""A model of the handover: every interleaving of old and new operators, for each update.

`world` has the states and the operators' steps, with the decisions that the operators themselves
make; `edges` has the updates between releases; `explore` visits every reachable state.
"""

from quarterdeck.metal3.model.edges import EDGES, RELEASES, Edge, ModelRelease
from quarterdeck.metal3.model.explore import Exploration, explore
from quarterdeck.metal3.model.table import TableRow, rows
from quarterdeck.metal3.model.world import Faults

__all__ = [
    "EDGES",
    "RELEASES",
    "Edge",
    "Exploration",
    "Faults",
    "ModelRelease",
    "TableRow",
    "explore",
    "rows",
]
