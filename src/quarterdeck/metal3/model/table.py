"""The table of all updates, as the model finds it. Pure."""

from collections.abc import Iterator

import msgspec

from quarterdeck.metal3.model.edges import EDGES, Edge
from quarterdeck.metal3.model.explore import Exploration, explore
from quarterdeck.metal3.model.world import MOST_CHANGES, NO_FAULTS, Faults

REFUSED_UP = "Upgradeable=False of machine-api"
REFUSED_DOWN = "not in the target's list of previous versions"


class TableRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An update, and what the model found about it."""

    edge: str
    old_version: str
    new_version: str
    supported: bool
    """Whether no interleaving breaks anything, and every one can end."""
    two_writers: bool
    owner: str
    """Who manages metal3 at the end, after what the administrator has to do."""
    template_changes: str
    """How often the pod template changes: with the same images, and with other images if the
    administrator removes the operator before its ClusterOperator."""
    by_hand: str
    """What the administrator has to do."""
    refused_by: str
    """How the cluster version operator refuses an update that is not supported."""
    states: int
    steps: int
    violation: str
    counterexample: tuple[str, ...]


def rows(faults: Faults = NO_FAULTS) -> Iterator[TableRow]:
    """The rows of all updates."""
    for edge in EDGES:
        yield row(edge, faults)


def row(edge: Edge, faults: Faults = NO_FAULTS) -> TableRow:
    """The row of one update."""
    found = explore(edge, faults=faults)
    others = explore(edge, same_images=False, any_order=False, deletions=False, faults=faults)
    supported = not found.violation and not found.stuck
    upwards = edge.old.version < edge.new.version
    refused = REFUSED_UP if upwards else REFUSED_DOWN
    return TableRow(
        edge=edge.name,
        old_version=edge.old.version,
        new_version=edge.new.version,
        supported=supported,
        two_writers=bool(found.violation),
        owner=" or ".join(sorted(found.owners)),
        template_changes=f"{_count(found)}, {_count(others)}",
        by_hand="delete the baremetal operator" if edge.removes_baremetal else "",
        refused_by="" if supported else refused,
        states=found.states,
        steps=found.steps,
        violation=found.violation,
        counterexample=found.counterexample,
    )


def _count(found: Exploration) -> str:
    changes = found.template_changes
    return "no bound" if changes >= MOST_CHANGES else str(changes)
