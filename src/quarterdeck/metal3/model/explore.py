"""Visits every state that an update can reach, and finds the shortest way to a violation. Pure."""

from collections import deque

import msgspec

from quarterdeck.metal3.model.edges import Edge, first_worlds, is_final, update_steps
from quarterdeck.metal3.model.world import (
    NO_FAULTS,
    Faults,
    Rules,
    World,
    deletion_steps,
    operator_steps,
)


class Exploration(msgspec.Struct, frozen=True, kw_only=True):
    """What the model found about an update."""

    states: int
    steps: int
    violation: str
    """What the shortest counterexample breaks; empty if nothing can be broken."""
    counterexample: tuple[str, ...]
    """Its steps."""
    owners: frozenset[str]
    """The owners of the Deployment in the final states."""
    template_changes: int
    """The most changes of the pod template on any way; `MOST_CHANGES` stands for no bound."""
    stuck: int
    """How many states there are from which no final state can be reached."""


def explore(
    edge: Edge,
    *,
    same_images: bool = True,
    any_order: bool = True,
    deletions: bool = True,
    faults: Faults = NO_FAULTS,
) -> Exploration:
    """Every interleaving of the operators of an update; the search is breadth-first."""
    rules = Rules(
        operators=edge.operators,
        same_images=same_images,
        any_order=any_order,
        deletions=deletions,
        faults=faults,
    )
    came_from: dict[World, tuple[World, str] | None] = {}
    before: dict[World, list[World]] = {}
    queue: deque[World] = deque()
    for world in first_worlds(edge, rules):
        came_from[world] = None
        queue.append(world)
    steps, violation = 0, ""
    example: tuple[str, ...] = ()
    finals: list[World] = []
    while queue:
        world = queue.popleft()
        if is_final(edge, rules, world):
            finals.append(world)
        found = [*update_steps(edge, rules, world), *deletion_steps(rules, world)]
        for index in range(len(rules.operators)):
            found += operator_steps(rules, world, index)
        for step in found:
            steps += 1
            before.setdefault(step.world, []).append(world)
            if step.violation and not violation:
                violation = step.violation
                example = (*_way_to(came_from, world), step.text)
            if step.world not in came_from:
                came_from[step.world] = (world, step.text)
                queue.append(step.world)
    return Exploration(
        states=len(came_from),
        steps=steps,
        violation=violation,
        counterexample=example,
        owners=frozenset(one.deployment.ownership.owner for one in finals if one.deployment),
        template_changes=max(world.changes for world in came_from),
        stuck=len(came_from) - _reach(before, finals),
    )


def _way_to(came_from: dict[World, tuple[World, str] | None], world: World) -> tuple[str, ...]:
    way: list[str] = []
    at = came_from[world]
    while at is not None:
        world, text = at
        way.append(text)
        at = came_from[world]
    return tuple(reversed(way))


def _reach(before: dict[World, list[World]], finals: list[World]) -> int:
    """How many states can reach one of these."""
    seen, queue = set(finals), deque(finals)
    while queue:
        for world in before.get(queue.popleft(), ()):
            if world not in seen:
                seen.add(world)
                queue.append(world)
    return len(seen)
